"""Convolutions in the frequency domain against torch's own: every size and precision, gradients, rounding, and where they are used."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from unskew.nn import LargeKernelConv2d, large_kernel
from unskew.nn.large_kernel import convolve, from_rows_last, normalise_rows_last, pays, to_rows_last

SIZES = [(28, 28, 7), (9, 12, 5), (12, 9, 7), (8, 5, 9), (3, 3, 7), (1, 6, 5), (7, 7, 3)]


def with_gradients(f, x, weight, bias, slope):
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
    y = f(*leaves)
    return y.detach(), *torch.autograd.grad(y, leaves, slope)


def ours(x, weight, bias):
    return from_rows_last(convolve(to_rows_last(x), weight, bias))


def torchs(x, weight, bias):
    return F.conv2d(x, weight, bias, padding=weight.shape[-1] // 2)


def numbers(height, width, k, dtype=torch.float64, batch=4, inner=3, outer=5):
    g = torch.Generator().manual_seed(0)
    draw = (batch, inner, height, width), (outer, inner, k, k), (outer,), (batch, outer, height, width)
    return [torch.randn(shape, generator=g, dtype=dtype) for shape in draw]


@pytest.mark.parametrize(("height", "width", "k"), SIZES)
def test_output_and_gradients_are_torchs(height, width, k):
    given = numbers(height, width, k)
    for a, b in zip(with_gradients(ours, *given), with_gradients(torchs, *given), strict=True):
        torch.testing.assert_close(a, b)


def test_single_precision_rounds_no_more_than_torchs():
    given = numbers(28, 28, 7, torch.float32, 16, 32, 32)
    exact = with_gradients(torchs, *[t.double() for t in given])
    errors = [
        [float((a.double() - b).norm() / b.norm()) for a, b in zip(with_gradients(f, *given), exact, strict=True)][:3]
        for f in (ours, torchs)
    ]
    assert all(a < 1.2 * b for a, b in zip(*errors, strict=True))
    assert max(errors[0]) < 2e-6


def test_the_gradient_of_what_needs_none_is_left_out():
    x, weight, bias, slope = numbers(8, 8, 5)
    y = convolve(to_rows_last(x), weight, bias.requires_grad_())
    y.backward(to_rows_last(slope))
    torch.testing.assert_close(bias.grad, slope.sum((0, 2, 3)))


@pytest.mark.parametrize("training", [True, False])
def test_normalisation_rows_last_is_torchs(training):
    x = numbers(5, 6, 5)[0]
    one, two = nn.BatchNorm2d(3).double().train(training), nn.BatchNorm2d(3).double().train(training)
    torch.testing.assert_close(from_rows_last(normalise_rows_last(one, to_rows_last(x))), two(x))
    torch.testing.assert_close(one.running_var, two.running_var)
    assert int(one.num_batches_tracked) == int(two.num_batches_tracked)


def test_the_layer_has_torchs_state_and_result(monkeypatch):
    layer, plain = LargeKernelConv2d(3, 5, 7, padding=3), nn.Conv2d(3, 5, 7, padding=3)
    layer.load_state_dict(plain.state_dict())
    assert list(layer.state_dict()) == list(plain.state_dict())
    x, calls = torch.randn(9, 3, 8, 8), []
    whole = large_kernel.convolve
    monkeypatch.setattr(large_kernel, "convolve", lambda *a: calls.append(1) or whole(*a))
    monkeypatch.setattr(large_kernel, "AHEAD_ALONE", 0.0)
    torch.testing.assert_close(layer(x), plain(x), atol=1e-5, rtol=1e-4)
    assert calls == [1]
    monkeypatch.setattr(large_kernel, "AHEAD_ALONE", float("inf"))
    assert torch.equal(layer(x), plain(x))
    assert calls == [1]


def test_it_is_used_for_wide_layers_with_large_kernels_only():
    x = torch.zeros(64, 64, 28, 28)
    assert pays(x, [nn.Conv2d(64, 64, 7, padding=3)])
    assert pays(x, [nn.Conv2d(64, 64, 7, padding="same")])
    assert not pays(x, [nn.Conv2d(64, 64, 3, padding=1)])
    assert not pays(x, [nn.Conv2d(64, 64, 7)])  # valid, not same
    assert not pays(x, [nn.Conv2d(64, 64, 7, padding=3, stride=2)])
    assert not pays(x, [nn.Conv2d(64, 64, 7, padding=3, groups=64)])
    assert not pays(x, [nn.Conv2d(64, 64, 7, padding=3, padding_mode="reflect")])
    assert not pays(x.bfloat16(), [nn.Conv2d(64, 64, 7, padding=3).bfloat16()])
    assert not pays(x[:1], [nn.Conv2d(64, 64, 7, padding=3)])
    assert not pays(x[:, :1], [nn.Conv2d(1, 4, 7, padding=3)])  # too few channels to repay the transforms
    with pytest.raises(ValueError, match="stride 1"):
        LargeKernelConv2d(2, 2, 7, padding=3, stride=2).rows_last(x)
