"""The chain of 1x1 layers against torch's modules: outputs, gradients, running statistics, with many equal pixels and with none."""

import copy
import pickle

import pytest
import torch
from torch import nn

from unskew.models._contract import maker
from unskew.nn.pointwise import Layer, colours, pooled, suits


def chain(dtype=torch.float64):
    torch.manual_seed(0)
    layers = [Layer(nn.Conv2d(a, b, 1), nn.BatchNorm2d(b)) for a, b in ((3, 16), (16, 5), (5, 7))]
    for layer in layers:
        nn.init.uniform_(layer.norm.weight, 0.5, 2)
        nn.init.uniform_(layer.norm.bias, -0.5, 0.5)
        layer.conv.to(dtype)
        layer.norm.to(dtype)
    return layers


def by_modules(x, layers):
    for layer in layers:
        x = layer.norm(layer.conv(x)).relu()
    return x.mean((2, 3))


def images(few_colours, dtype=torch.float64):
    x = torch.rand(5, 3, 6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return ((2 * x).round() / 2 if few_colours else x).to(dtype) + 3  # far from 0: moments must not be lost to rounding


def parameters(layers):
    return [p for layer in layers for p in (layer.conv.weight, layer.conv.bias, layer.norm.weight, layer.norm.bias)]


@pytest.mark.parametrize("few_colours", [True, False])
def test_outputs_gradients_and_statistics_are_those_of_the_modules(few_colours):
    x, layers = images(few_colours), chain()
    reference = copy.deepcopy(layers)
    found = colours(x)
    assert (len(found.rows) < 5 * 24) == few_colours
    assert suits(x, layers)
    slope = torch.randn(5, 7, dtype=torch.float64)
    y, expected = pooled(found, layers), by_modules(x, reference)
    torch.testing.assert_close(y, expected)
    ours = torch.autograd.grad(y, parameters(layers), slope)
    theirs = torch.autograd.grad(expected, parameters(reference), slope)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(layers, reference, strict=True):
        torch.testing.assert_close(a.norm.state_dict(), b.norm.state_dict())
        a.norm.eval(), b.norm.eval()
    with torch.no_grad():
        torch.testing.assert_close(pooled(found, layers), by_modules(x, reference))


def test_pieces_that_do_not_divide_the_rows(monkeypatch):
    from unskew.nn import pointwise

    monkeypatch.setattr(pointwise, "CACHE", 1)
    x, layers = images(False), chain()
    assert len(pointwise._cuts(colours(x), layers)) == 2
    torch.testing.assert_close(pooled(colours(x), layers), by_modules(x, chain()))


def test_single_precision_is_as_exact_as_torchs():
    x = images(True, torch.float32)
    exact = by_modules(x.double(), chain()).detach()
    ours, theirs = pooled(colours(x), chain(torch.float32)), by_modules(x, chain(torch.float32))
    assert float((ours - exact).detach().norm()) < 3 * float((theirs - exact).detach().norm()) + 1e-6


def test_colours_are_counted_by_image():
    x = torch.zeros(2, 3, 2, 2)
    x[0, 0, 0, 0] = 1.0
    found = colours(x)
    listed = sorted(zip(found.image.tolist(), found.rows.tolist(), found.share.tolist(), strict=True))
    assert listed == [(0, [0.0, 0.0, 0.0], 0.75), (0, [1.0, 0.0, 0.0], 0.25), (1, [0.0, 0.0, 0.0], 1.0)]
    unclear = colours(torch.full((2, 3, 2, 2), torch.nan))  # NaN equals nothing: every pixel stands for itself
    assert len(unclear.rows) == 8


def test_where_it_does_not_apply():
    x, layers = images(True), chain()
    assert not suits(x.float(), layers)
    assert not suits(x.clone().requires_grad_(), layers)
    assert not suits(x, [Layer(nn.Conv2d(3, 4, 3, padding=1).double(), layers[0].norm)])
    for layer in layers:
        layer.norm.eval()
    assert not suits(x, layers)  # a gradient in evaluation mode
    with torch.no_grad():
        assert suits(x, layers)


def test_a_changed_batch_is_looked_at_again_and_the_network_can_be_copied():
    model = maker("rebias-conv", {"kernel": 1}, (3, 6, 4), 3)().train()
    x = images(True, torch.float32)
    first = model(x)
    x += 0.5
    moved = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    torch.testing.assert_close(model(x), moved(x.clone()))
    assert not torch.equal(model(x), first)
