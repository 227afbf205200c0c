r"""A chain of 1x1 convolutions with batch normalisation and ReLU, then the mean over pixels, on the CPU.

.. math::  h_l = \max(0, A_l h_{l-1} + c_l), \qquad A_l = \mathrm{diag}(s_l) W_l, \quad c_l = s_l (b_l - \mu_l) + \beta_l, \quad
           s_l = \frac{\gamma_l}{\sqrt{v_l + \epsilon}}, \qquad \mu_l = W_l m + b_l, \quad v_l = \mathrm{diag}(W_l \Sigma W_l^\top)

m and Sigma are mean and covariance of h_{l-1} over all pixels of the batch, so the normalisation of what a layer puts out is known
before it is computed and costs no pass of its own. Pixels of one colour in one image are computed once and counted: a coloured digit
has a few hundred, a binarised one two. Pieces go through product, ReLU and moments while they are in the cache; the gradient takes
the same path back. One array per layer is kept, where a chain of modules keeps three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unskew.core import engine

CACHE = 1 << 18  # numbers of a piece
WIDE = 16  # channels from which on the chain is faster than torch's layers even if no two pixels are equal


@dataclass(frozen=True)
class Layer:
    conv: nn.Conv2d
    norm: nn.BatchNorm2d


@dataclass(frozen=True)
class Colours:
    """The pixels of a batch of images, equal ones of an image once."""

    rows: Tensor  # (R, C)
    image: Tensor  # (R,)
    share: Tensor  # (R,) of the image's pixels
    images: int
    pixels: int  # of all images

    def worth(self, layers: Sequence[Layer]) -> bool:
        return 2 * len(self.rows) < self.pixels or max(layer.conv.out_channels for layer in layers) >= WIDE


def suits(x: Tensor, layers: Sequence[Layer]) -> bool:
    """Whether a chain can be computed here for x (B, C, H, W): 1x1 kernels on one CPU process, training or without gradient."""
    norms = [layer.norm for layer in layers]
    return (
        isinstance(x, Tensor)  # not a stand-in of torch.fx, which traces the network
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and x.dtype == layers[0].conv.weight.dtype
        and not x.requires_grad
        and not torch.is_autocast_enabled("cpu")
        and engine.world() == 1
        and all(layer.conv.kernel_size == layer.conv.stride == (1, 1) for layer in layers)
        and all(layer.conv.groups == 1 and layer.conv.bias is not None for layer in layers)
        and all(n.affine and n.track_running_stats and n.momentum is not None for n in norms)
        and len({n.training for n in norms}) == 1
        and (norms[0].training or not torch.is_grad_enabled())
        and len(x) > 1
    )


@torch.no_grad()
def colours(x: Tensor) -> Colours:
    """The colours of images x (B, C, H, W) and how often each image has them.

    >>> found = colours(torch.tensor([0.0, 1.0, 1.0, 1.0]).view(1, 1, 2, 2))
    >>> found.rows.flatten().tolist(), found.share.tolist()
    ([0.0, 1.0], [0.25, 0.75])
    """
    images, channels = x.shape[:2]
    rows = x.flatten(2).transpose(1, 2).reshape(-1, channels)
    number = len(rows) // images
    image = torch.arange(images).repeat_interleave(number)
    bits = rows.view(torch.int32 if x.dtype == torch.float32 else torch.int64).long()
    odd = torch.tensor([0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D, 0x27D4EB2F165667C5, 0x165667B19E3779F9])
    key = (bits * odd[1 + torch.arange(channels) % 3] * (1 + 2 * torch.arange(channels))).sum(1) + image * odd[0]
    order = key.argsort()
    key, listed, owner = key[order], rows[order], image[order]
    new = torch.ones(len(rows), dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    # Equal keys must be equal colours of one image; else every pixel stands for itself.
    alike = (listed[1:] == listed[:-1]).all(1) & (owner[1:] == owner[:-1])
    if not bool((alike | new[1:]).all()):
        return Colours(rows, image, rows.new_full((len(rows),), 1 / number), images, len(rows))
    place = new.nonzero()[:, 0]
    counts = torch.diff(place, append=torch.tensor([len(rows)]))
    sequence = owner[place].argsort(stable=True)
    place, counts = place[sequence], counts[sequence]
    return Colours(listed[place], owner[place], counts.to(x.dtype) / number, images, len(rows))


def pooled(found: Colours, layers: Sequence[Layer]) -> Tensor:
    """(B, C) means over the pixels of what the chain makes of the images; running statistics move as torch moves them."""
    if layers[0].norm.training:
        parameters = [p for layer in layers for p in (layer.conv.weight, layer.conv.bias, layer.norm.weight, layer.norm.bias)]
        out: Tensor = _Chain.apply(found, layers, *parameters)  # type: ignore[no-untyped-call]
        return out
    folded = []
    for layer in layers:
        mean, variance = cast(Tensor, layer.norm.running_mean), cast(Tensor, layer.norm.running_var)
        scale = layer.norm.weight * (variance + layer.norm.eps).rsqrt()
        bias = cast(Tensor, layer.conv.bias)
        folded.append((layer.conv.weight.flatten(1) * scale[:, None], scale * (bias - mean) + layer.norm.bias))
    out = found.rows.new_zeros(found.images, len(folded[-1][1]))
    for a, b in _cuts(found, layers):
        h = found.rows[a:b]
        for matrix, constant in folded:
            h = torch.mm(h, matrix.T).add_(constant).relu_()
        out.index_add_(0, found.image[a:b], h * found.share[a:b, None])
    return out


def _cuts(found: Colours, layers: Sequence[Layer]) -> list[tuple[int, int]]:
    """First and last row of each piece."""
    step = max(64, CACHE // max(layer.conv.out_channels for layer in layers))
    return [(start, min(len(found.rows), start + step)) for start in range(0, len(found.rows), step)]


def fold(eps: float, *given: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A, c, and mean and variance of W h + b, from its weights and the moments of h about `shift`."""
    weight, bias, gamma, beta, mean, second, shift = given
    w = weight.flatten(1)
    centre = w @ (mean + shift) + bias
    variance = ((w @ (second - torch.outer(mean, mean))) * w).sum(1).clamp(min=0)
    scale = gamma * (variance + eps).rsqrt()
    return w * scale[:, None], scale * (bias - centre) + beta, centre, variance


class _Moments:
    """Weighted mean and second moment of rows about a point near their mean, in double precision over pieces."""

    def __init__(self, first: Tensor) -> None:
        width = first.shape[1]
        self.shift = first.mean(0)
        self.total = first.new_zeros(width, dtype=torch.float64)
        self.second = first.new_zeros(width, width, dtype=torch.float64)

    def add(self, h: Tensor, share: Tensor) -> None:
        h = h - self.shift
        weighted = h * share[:, None]
        self.total += weighted.sum(0)
        self.second += weighted.T @ h

    def done(self, images: int) -> tuple[Tensor, Tensor, Tensor]:
        kind = self.shift.dtype
        return (self.total / images).to(kind), (self.second / images).to(kind), self.shift


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, found: Colours, layers: Sequence[Layer], *parameters: Tensor) -> Tensor:
        cuts, values = _cuts(found, layers), [found.rows]
        moments = _Moments(found.rows[: cuts[0][1]])
        for a, b in cuts:
            moments.add(found.rows[a:b], found.share[a:b])
        ctx.kept, ctx.folded = [], []
        out = found.rows.new_zeros(found.images, layers[-1].conv.out_channels)
        for k, layer in enumerate(layers):
            given = (*parameters[4 * k : 4 * k + 4], *moments.done(found.images))
            matrix, constant, centre, variance = fold(layer.norm.eps, *given)
            _move_statistics(layer.norm, centre, variance * (found.pixels / (found.pixels - 1)))
            values.append(found.rows.new_empty(len(found.rows), len(matrix)))
            for a, b in cuts:
                h = torch.mm(values[k][a:b], matrix.T, out=values[k + 1][a:b]).add_(constant).relu_()
                if k == len(layers) - 1:
                    out.index_add_(0, found.image[a:b], h * found.share[a:b, None])
                else:
                    moments = _Moments(h) if a == 0 else moments
                    moments.add(h, found.share[a:b])
            ctx.kept.append(given)
            ctx.folded.append(matrix)
        ctx.save_for_backward(*values)
        ctx.found, ctx.cuts, ctx.eps = found, cuts, [layer.norm.eps for layer in layers]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        values, found, cuts = ctx.saved_tensors, ctx.found, ctx.cuts
        gradients: list[Tensor] = []
        behind = torch.empty_like(values[-1])  # the gradient of what the layer adds up, before its ReLU
        for a, b in cuts:
            _through_relu(slope[found.image[a:b]].mul_(found.share[a:b, None]), values[-1][a:b], behind[a:b])
        for k in reversed(range(len(values) - 1)):
            wide, inner = len(ctx.folded[k]), values[k].shape[1]
            d_matrix, d_constant = slope.new_zeros(wide, inner, dtype=torch.float64), slope.new_zeros(wide, dtype=torch.float64)
            for a, b in cuts:
                d_matrix += behind[a:b].T @ values[k][a:b]
                d_constant += behind[a:b].sum(0)
            with torch.enable_grad():
                *leaves, shift = [t.detach().requires_grad_() for t in ctx.kept[k]]
                shift = shift.detach()
                matrix, constant, _, _ = fold(ctx.eps[k], *leaves, shift)
                slopes = torch.autograd.grad((matrix, constant), leaves, (d_matrix.to(slope), d_constant.to(slope)))
            gradients = [*slopes[:4], *gradients]
            if k == 0:
                break
            # To the layer below: through the product, and through the moments that normalise it.
            second = (slopes[5] + slopes[5].T) / found.images
            middle = slopes[4] / found.images - shift @ second
            below = torch.empty_like(values[k])
            for a, b in cuts:
                h = values[k][a:b]
                part = torch.mm(h, second, out=below[a:b]).add_(middle).mul_(found.share[a:b, None])
                part.addmm_(behind[a:b], ctx.folded[k])
                _through_relu(part, h, part)
            behind = below
        return None, None, *gradients


def _through_relu(slope: Tensor, value: Tensor, out: Tensor) -> None:
    """`slope` where the ReLU's value is above 0, else 0, in one pass."""
    torch.ops.aten.threshold_backward.grad_input(slope, value, 0, grad_input=out)


def _move_statistics(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> None:
    running = cast(Tensor, norm.running_mean), cast(Tensor, norm.running_var)
    momentum = cast(float, norm.momentum)
    cast(Tensor, norm.num_batches_tracked).add_(1)
    running[0].lerp_(mean.to(running[0]), momentum)
    running[1].lerp_(variance.to(running[1]), momentum)
