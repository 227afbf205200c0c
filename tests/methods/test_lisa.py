"""LISA: partners are of the right kind, a step by hand, and rows without partners stay as they are."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, sgd_step, toy
from unskew.core.errors import UserError
from unskew.methods.lisa import LISAConfig, partners
from unskew.records import Batch


def test_partners():
    g = torch.Generator().manual_seed(0)
    y, b = torch.randint(0, 3, (200,), generator=g), torch.randint(-1, 3, (200,), generator=g)
    for within in (True, False):
        found = partners(y, b, torch.rand(200, 200, generator=g), within)
        mixed = found != torch.arange(200)
        assert bool((y[found[mixed]] == y[mixed]).all()) is within
        assert bool((b[found[mixed]] == b[mixed]).all()) is not within
        assert not mixed[b < 0].any()
        assert mixed[b >= 0].all()
    first = partners(
        torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2]), torch.tensor([[0.9, 0.2, 0.8], [0, 0, 1], [1, 0, 0.0]]), True
    )
    assert first.tolist() == [2, 2, 0]  # the largest draw among the others


@pytest.mark.parametrize("select", [0.0, 1.0])
def test_a_step_by_hand(select):
    method = make("lisa", {"select": str(select)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    torch.manual_seed(3)
    sgd_step(ours, batch)
    torch.manual_seed(3)
    torch.rand(())
    share = torch.distributions.Beta(2.0, 2.0).sample((12,)).double()
    draws = torch.rand(12, 12)
    bias, y = toy().bias[:12, 0], batch.y
    x, target = [], []
    for i in range(12):
        fits = [
            j for j in range(12) if ((y[i] == y[j] and bias[i] != bias[j]) if select else (y[i] != y[j] and bias[i] == bias[j]))
        ]
        j = max(fits, key=lambda k: float(draws[i, k])) if fits else i
        x.append(share[i] * batch.x[i] + (1 - share[i]) * batch.x[j])
        target.append(share[i] * F.one_hot(y[i], 3) + (1 - share[i]) * F.one_hot(y[j], 3))
    descend(F.cross_entropy(method.model(torch.stack(x)), torch.stack(target)), method.model.parameters())
    for a, b in zip(ours.parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_without_partners_it_is_plain_training():
    method = make("lisa", {"select": "1"}).train()
    batch = batch_of(method)
    lonely = Batch(**{**batch.columns(), "bias": torch.full_like(batch.bias, -1), "group": torch.full_like(batch.group, -1)})
    expected = F.cross_entropy(method.model(batch.x), batch.y)
    torch.testing.assert_close(method.loss(lonely)["mixed_ce"], expected)
    with pytest.raises(UserError, match="select must lie in"):
        LISAConfig(select=2)
