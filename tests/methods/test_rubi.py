"""RUBi: a whole step by hand, with a head that learns and with one that stays random."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import G, batch_of, descend, features, make, same, sgd_step
from unskew.core.errors import UserError


@pytest.mark.parametrize("frozen", [False, True])
def test_rubi_step(frozen):
    method = make("rubi", {**G, "frozen_head": str(frozen)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    x, y = batch.x, batch.y
    believed = method.head(features(method.g, x).detach())
    masked = F.cross_entropy(method.model(x) * torch.sigmoid(believed), y)
    question = F.cross_entropy(believed, y) if not frozen else 0
    trained = [*method.model.parameters(), *([] if frozen else method.head.parameters()), *method.g.parameters()]
    descend(masked + question + F.cross_entropy(method.g(x), y), trained)
    same(ours, method)
    assert torch.equal(ours.head.weight, make("rubi", {**G, "frozen_head": "true"}).head.weight) == frozen


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"pretrain": "3"}, "leave out pretrain"), ({"frozen_head": "true", "weight": "2"}, "trains no question branch")],
)
def test_options_that_would_be_ignored_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        make("rubi", {**G, **settings})
