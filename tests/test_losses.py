"""Losses by hand."""

import math

import pytest
import torch
import torch.nn.functional as F

from unskew.losses import confusion, gce, learned_mixin_h, negative_entropy, rubi


def test_losses_by_hand():
    z = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    p = z.softmax(1)
    assert float(confusion(z)) == pytest.approx(float(-p.log().mean()))
    assert float(negative_entropy(z)) == pytest.approx(float((p * p.log()).sum()))
    assert float(negative_entropy(torch.tensor([[1000.0, 0.0]]))) == 0  # an underflow is 0, not NaN
    assert float(confusion(torch.zeros(2, 4))[0]) == pytest.approx(math.log(4))
    maps = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(confusion(maps), torch.stack([confusion(m.flatten(1).T).mean() for m in maps]))
    y = torch.tensor([2])
    assert float(rubi(z, torch.full((1, 3), 50.0, dtype=torch.float64), y)) == pytest.approx(float(F.cross_entropy(z, y)))
    ce, h = learned_mixin_h(z, torch.zeros(1, 3, dtype=torch.float64), torch.ones(1, dtype=torch.float64), y, 1.0)
    assert float(ce) == pytest.approx(float(F.cross_entropy(z, y)))  # a g that knows nothing changes nothing
    assert float(h) == pytest.approx(math.log(3))


def test_gce_value_and_gradient():
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    y = torch.arange(9) % 4
    p = x.softmax(1).gather(1, y[:, None]).squeeze(1)
    torch.testing.assert_close(gce(x, y, 0.7), (1 - p**0.7) / 0.7, rtol=0, atol=1e-12)
    (true,) = torch.autograd.grad(gce(x, y, 0.7).sum(), x)
    (plain,) = torch.autograd.grad((p.detach() ** 0.7 * F.cross_entropy(x, y, reduction="none")).sum(), x)
    torch.testing.assert_close(true, plain, rtol=0, atol=1e-12)
    (scaled,) = torch.autograd.grad(gce(x, y, 0.7, scaled=True).sum(), x)
    torch.testing.assert_close(scaled, 0.7 * true, rtol=0, atol=1e-12)
    assert float(gce(torch.tensor([[-200.0, 0.0]]), torch.tensor([0]))[0]) == pytest.approx(1 / 0.7)
