"""Generalised cross-entropy: a whole step by its formula, its gradient by that of cross-entropy, and wrong settings."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, same, sgd_step
from unskew.core.errors import UserError


def test_gce_step():
    method = make("gce", {"q": "0.4"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    p = torch.softmax(method.model(batch.x), 1)[torch.arange(12), batch.y]
    descend(((1 - p**0.4) / 0.4).mean(), method.model.parameters())
    same(ours, method)


@pytest.mark.parametrize(("scaled", "factor"), [("false", 1.0), ("true", 0.7)])
def test_its_gradient_is_that_of_cross_entropy_times_a_power_of_the_chance(scaled, factor):
    method = make("gce", {"scaled": scaled})
    batch = batch_of(method)
    weights = list(method.model.parameters())
    found = torch.autograd.grad(method.loss(batch)["gce"], weights)
    expected = [torch.zeros_like(w) for w in weights]
    for k in range(12):  # row by row
        ce = F.cross_entropy(method.model(batch.x[k : k + 1]), batch.y[k : k + 1])
        for total, g in zip(expected, torch.autograd.grad(ce, weights), strict=True):
            total += factor * torch.exp(-ce.detach()) ** 0.7 * g / 12
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_with_q_one_it_is_the_chance_of_being_wrong():
    method = make("gce", {"q": "1"})
    batch = batch_of(method)
    p = torch.softmax(method.model(batch.x), 1)[torch.arange(12), batch.y]
    torch.testing.assert_close(method.loss(batch)["gce"], 1 - p.mean())
    for q in ("0", "1.5"):
        with pytest.raises(UserError, match=r"must lie in \(0, 1\]"):
            make("gce", {"q": q})
