"""BAdd: a step by hand, predictions without the added vectors, rows without a bias value, and refusals."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.methods import batch_of, descend, make, sgd_step
from unskew.core.errors import UserError
from unskew.methods._contract import method_class
from unskew.methods.badd import BAddConfig
from unskew.records import Batch


@pytest.mark.parametrize("learn", [True, False])
def test_a_step_by_hand(learn):
    method = make("badd", {"scale": "0.5", "learn": str(learn)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    (v,) = method.vectors
    rows = torch.stack([v[int(b)] - v.mean(0) for b in batch.bias[:, 0]])
    loss = F.cross_entropy(method.model.head(method.model.blocks(batch.x) + 0.5 * rows), batch.y)
    descend(loss, [p for p in method.parameters() if p.requires_grad])
    for a, b in zip(ours.parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    assert v.requires_grad is learn
    torch.testing.assert_close(method.predict(batch.x), method.model(batch.x))


def test_a_row_without_a_value_gets_no_vector():
    method = make("badd").train()
    batch = batch_of(method)
    missing = Batch(**{**batch.columns(), "bias": torch.full_like(batch.bias, -1)})
    torch.testing.assert_close(method.loss(missing)["ce"], F.cross_entropy(method.model(batch.x), batch.y))
    assert float(method.loss(missing)["ce"].detach()) != float(method.loss(batch)["ce"].detach())


def test_refusals():
    with pytest.raises(UserError, match="scale must be above 0"):
        BAddConfig(scale=0)
    facts = make("badd").facts
    with pytest.raises(UserError, match="ends in a linear layer"):
        method_class("badd")(BAddConfig(), facts, lambda: nn.Identity())
