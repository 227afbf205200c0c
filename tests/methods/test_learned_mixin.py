"""LearnedMixin: a whole step by hand, learned and as a plain product."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import G, batch_of, descend, features, make, same, sgd_step
from unskew.core.errors import UserError


@pytest.mark.parametrize("variant", ["learned", "product"])
def test_learned_mixin_step_after_pretraining(variant):
    method = make("learned_mixin", {**G, "pretrain": "0", "variant": variant})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    x, y = batch.x, batch.y
    log_g = F.log_softmax(method.g(x), 1).detach()
    a = F.softplus(method.head(features(method.model, x))) if variant == "learned" else torch.ones(len(x), 1)
    mixed = F.cross_entropy(F.log_softmax(method.model(x), 1) + a * log_g, y)
    p = torch.softmax(a * log_g, 1)
    entropy = -(p * p.log()).sum(1).mean() if variant == "learned" else 0.0
    descend(mixed + 0.36 * entropy, [p for p in (*method.model.parameters(), *method.head.parameters()) if p.requires_grad])
    same(ours, method)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"variant": "product", "penalty": "0.5"}, "variant=product has neither penalty nor head"),
        ({"variant": "product", "frozen_head": "true"}, "variant=product has neither penalty nor head"),
        ({"g_training": "joint", "pretrain": "3"}, "g_training=joint trains g along with f; leave out pretrain"),
    ],
)
def test_options_that_would_be_ignored_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        make("learned_mixin", {**G, **settings})
