r"""Convolutions with large kernels on the CPU, as products in the frequency domain, activations laid out (H, W, B, C).

.. math::  y = F^{-1}\big( \hat x \cdot \overline{\hat w} \big), \qquad
           \mathrm{d}x = F^{-1}\big( \hat g \cdot \hat w \big), \qquad \mathrm{d}w = F^{-1}\big( \hat x \cdot \overline{\hat g} \big)

The transforms are dense matrix products: at the sizes of such networks they are faster than an FFT, and as exact. A circular
length of n + (k - 1) / 2 is enough for the output and both gradients, since what wraps around falls on zeros.

The layout decides: with activations of shape (H, W, B, C) every step is a plain matrix product without a copy. A whole network
stays in it; `LargeKernelConv2d` alone has to turn its input and output.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Transform:
    """Matrices of one size: to frequencies for images and kernels, and back for output, input gradient and kernel gradient."""

    frequencies: tuple[int, int]  # along the height, and half of those along the width
    image: tuple[Tensor, Tensor]
    kernel: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]
    input_gradient: tuple[Tensor, Tensor]
    kernel_gradient: tuple[Tensor, Tensor]


@cache
def transform(height: int, width: int, k: int, dtype: torch.dtype) -> Transform:
    """The transform of images of this size and kernels of k x k."""
    p = k // 2
    tall, wide = height + p, width + p
    return Transform(
        (tall, wide // 2 + 1),
        image=(_along_height(height, tall, dtype), _along_width(width, wide, dtype)),
        kernel=(_along_height(k, tall, dtype), _along_width(k, wide, dtype)),
        output=(_back_height(height, -p, tall, dtype), _back_width(width, -p, wide, dtype)),
        input_gradient=(_back_height(height, p, tall, dtype), _back_width(width, p, wide, dtype)),
        kernel_gradient=(_back_height(k, -p, tall, dtype), _back_width(k, -p, wide, dtype)),
    )


def _angles(rows: Tensor, columns: Tensor, length: int) -> Pair:
    # The product is reduced first, in integers: large angles would lose digits.
    angle = (rows[:, None] * columns[None]).remainder(length).double() * (2 * math.pi / length)
    return angle.cos(), angle.sin()


def _along_width(n: int, length: int, dtype: torch.dtype) -> Tensor:
    """(2 K, n): real parts, then imaginary ones, of the half spectrum of n numbers."""
    cos, sin = _angles(torch.arange(length // 2 + 1), torch.arange(n), length)
    return torch.cat([cos, -sin]).to(dtype)


def _along_height(n: int, length: int, dtype: torch.dtype) -> Tensor:
    """(2 N, 2 n): from n complex numbers, each a pair, to N frequencies, real parts above imaginary ones."""
    cos, sin = _angles(torch.arange(length), torch.arange(n), length)
    return torch.cat([torch.stack([cos, sin], 2), torch.stack([-sin, cos], 2)]).flatten(1).to(dtype)


def _back_height(n: int, shift: int, length: int, dtype: torch.dtype) -> Tensor:
    """(2 n, 2 N): from N frequencies, real parts above imaginary ones, to the n places from `shift` on, each a pair."""
    cos, sin = _angles(torch.arange(n) + shift, torch.arange(length), length)
    return (torch.stack([torch.cat([cos, -sin], 1), torch.cat([sin, cos], 1)], 1).flatten(0, 1) / length).to(dtype)


def _back_width(n: int, shift: int, length: int, dtype: torch.dtype) -> Tensor:
    """(n, 2 K): from half a spectrum to n real numbers; all but the first frequency (and the middle one) stand for two."""
    cos, sin = _angles(torch.arange(n) + shift, torch.arange(length // 2 + 1), length)
    times = torch.full((length // 2 + 1,), 2.0 / length, dtype=torch.float64)
    times[0] /= 2
    if length % 2 == 0:
        times[-1] /= 2
    return torch.cat([cos * times, -sin * times], 1).to(dtype)


COLUMNS = 2048  # of a piece of a transform, so that it stays in the cache between height and width


def _to_frequencies(x: Tensor, matrices: Pair, frequencies: tuple[int, int]) -> Tensor:
    """(H, W, M) real numbers as (2, N * K, M): real and imaginary parts."""
    along_height, along_width = matrices
    height, _, columns = x.shape
    n, k = frequencies
    out = x.new_empty(2 * n, k, columns)
    wide, tall = along_width.expand(height, -1, -1), along_height.expand(k, -1, -1)
    for a in range(0, columns, COLUMNS):
        b = min(columns, a + COLUMNS)
        half = torch.bmm(wide, x[:, :, a:b])
        torch.bmm(tall, half.view(2 * height, k, b - a).transpose(0, 1), out=out.transpose(0, 1)[:, :, a:b])
    return out.view(2, n * k, columns)


def _to_places(spectrum: Tensor, matrices: Pair, frequencies: tuple[int, int]) -> Tensor:
    """(2, N * K, M) frequencies as (H, W, M) real numbers."""
    back_height, back_width = matrices
    n, k = frequencies
    columns, height = spectrum.shape[2], len(back_height) // 2
    by_frequency = spectrum.view(2 * n, k, columns).transpose(0, 1)
    out = spectrum.new_empty(height, len(back_width), columns)
    wide, tall = back_width.expand(height, -1, -1), back_height.expand(k, -1, -1)
    for a in range(0, columns, COLUMNS):
        b = min(columns, a + COLUMNS)
        half = spectrum.new_empty(height, 2 * k, b - a)
        torch.bmm(tall, by_frequency[:, :, a:b], out=half.view(2 * height, k, b - a).transpose(0, 1))
        torch.bmm(wide, half, out=out[:, :, a:b])
    return out


def _product(a: Tensor, b: Tensor, conjugate: bool) -> Tensor:
    """Complex matrix products, one per frequency: a (2, F, m, k) times b (2, F, k, n), or its conjugate."""
    sign = -1.0 if conjugate else 1.0
    out = a.new_empty(2, a.shape[1], a.shape[2], b.shape[3])
    torch.bmm(a[0], b[0], out=out[0])
    out[0].baddbmm_(a[1], b[1], alpha=-sign)
    torch.bmm(a[1], b[0], out=out[1])
    out[1].baddbmm_(a[0], b[1], alpha=sign)
    return out


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        height, width, batch, inner = x.shape
        outer, k = len(weight), weight.shape[-1]
        plan = transform(height, width, k, x.dtype)
        n = plan.frequencies
        spectrum = _to_frequencies(x.reshape(height, width, -1), plan.image, n).view(2, -1, batch, inner)
        kernel = _to_frequencies(weight.permute(2, 3, 1, 0).reshape(k, k, -1), plan.kernel, n).view(2, -1, inner, outer)
        product = _product(spectrum, kernel, conjugate=True)
        out = _to_places(product.view(2, -1, batch * outer), plan.output, n).view(height, width, batch, outer)
        ctx.save_for_backward(spectrum, kernel)
        ctx.plan = plan
        ctx.k = k
        return out if bias is None else out.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        spectrum, kernel = ctx.saved_tensors
        height, width, batch, outer = g.shape
        inner, plan, k = kernel.shape[2], ctx.plan, ctx.k
        n = plan.frequencies
        slope = _to_frequencies(g.reshape(height, width, -1), plan.image, n).view(2, -1, batch, outer)
        dx = dw = None
        if ctx.needs_input_grad[0]:
            product = _product(slope, kernel.transpose(2, 3), conjugate=False)
            dx = _to_places(product.view(2, -1, batch * inner), plan.input_gradient, n).view(height, width, batch, inner)
        if ctx.needs_input_grad[1]:
            product = _product(spectrum.transpose(2, 3), slope, conjugate=True)
            dw = (
                _to_places(product.view(2, -1, inner * outer), plan.kernel_gradient, n)
                .view(k, k, inner, outer)
                .permute(3, 2, 0, 1)
            )
        return dx, dw, g.sum((0, 1, 2)) if ctx.needs_input_grad[2] else None


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The convolution, stride 1 and same padding, of x (H, W, B, C) with weight (O, C, k, k), k odd: (H, W, B, O)."""
    out: Tensor = _Convolution.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


# Products that a direct convolution makes in the time of one of ours, by `make bench NAME=large_kernel`. The choice is a rule and
# not a stopwatch: a resumed training must take the path that it took before.
AHEAD = 1.6
AHEAD_ALONE = 2.6  # with the turns of the layout around a single convolution
LEAST_ROWS = 8  # below, reading the kernel's spectrum costs more than it saves


def fits(conv: nn.Conv2d) -> bool:
    """Whether a convolution is one of these: odd square kernel, stride 1, same padding with zeros, one group."""
    k = conv.kernel_size[0]
    return (
        conv.kernel_size == (k, k)
        and k % 2 == 1
        and conv.stride == conv.dilation == (1, 1)
        and (conv.padding == "same" or conv.padding == (k // 2, k // 2))
        and conv.padding_mode == "zeros"
        and conv.groups == 1
    )


def pays(x: Tensor, convs: Sequence[nn.Conv2d], ahead: float = AHEAD) -> bool:
    """Whether frequencies are faster than torch's own convolutions for images x (B, C, H, W) passing through all of these."""
    if not isinstance(x, Tensor):  # a stand-in of torch.fx, which traces the network
        return False
    batch, _, height, width = x.shape
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64) or x.dtype != convs[0].weight.dtype:
        return False
    if batch < LEAST_ROWS or torch.is_autocast_enabled("cpu") or not all(fits(c) and c.kernel_size[0] >= 5 for c in convs):
        return False
    direct = sum(batch * height * width * c.weight.numel() for c in convs)
    return direct > ahead * sum(products(batch, height, width, c) for c in convs)


def products(batch: int, height: int, width: int, conv: nn.Conv2d) -> int:
    """Multiplications of one pass of ours, transforms of the kernel included."""
    k, pairs = conv.kernel_size[0], conv.in_channels * conv.out_channels
    n, half = height + k // 2, (width + k // 2) // 2 + 1
    image = 2 * height * half * width + 4 * n * height * half
    kernel = 2 * k * half * k + 4 * n * k * half
    return batch * (conv.in_channels + conv.out_channels) * image + 4 * n * half * batch * pairs + pairs * kernel


class LargeKernelConv2d(nn.Conv2d):
    """`nn.Conv2d`, same weights and state, faster on the CPU with odd kernels of 5 and more, stride 1 and same padding.

    `forward` takes (B, C, H, W) as usual. `rows_last` takes and returns (H, W, B, C), for a network that keeps this layout.
    Where torch's own is faster (few channels, few rows, other devices, precisions or strides), torch's own is used.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim == 4 and pays(input, [self], AHEAD_ALONE):
            return from_rows_last(self.rows_last(to_rows_last(input)))
        return super().forward(input)

    def rows_last(self, input: Tensor) -> Tensor:
        """(H, W, B, C) in and out, always in the frequency domain; a 1x1 kernel is one matrix product."""
        if not fits(self):
            raise ValueError(f"{self}: needs an odd kernel, stride 1, same padding with zeros and one group")
        if self.kernel_size == (1, 1):
            return F.linear(input, self.weight.flatten(1), self.bias)
        return convolve(input, self.weight, self.bias)


def to_rows_last(x: Tensor) -> Tensor:
    """(B, C, H, W) to (H, W, B, C)."""
    return x.permute(2, 3, 0, 1).contiguous()


def from_rows_last(x: Tensor) -> Tensor:
    """(H, W, B, C) to (B, C, H, W)."""
    return x.permute(2, 3, 0, 1).contiguous()


def normalise_rows_last(norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    """A batch normalisation of (H, W, B, C): one picture of H W times B pixels in torch's channels-last layout."""
    height, width, batch, channels = x.shape
    picture = x.view(1, height * width, batch, channels).permute(0, 3, 1, 2)
    out: Tensor = norm(picture)
    return out.permute(0, 2, 3, 1).reshape(x.shape)
