"""Gradient reversal, layers that give the same result in one process and in many, and large kernels (large_kernel.py)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core import engine
from unskew.nn.large_kernel import LargeKernelConv2d as LargeKernelConv2d


class GradientReversal(nn.Module):
    r"""The identity, with its gradient reversed: what follows learns, what comes before unlearns.

    .. math::  y = x, \qquad \frac{\partial L}{\partial x} = -\mu \frac{\partial L}{\partial y}
    """

    def __init__(self, mu: float = 1.0) -> None:
        super().__init__()
        self.mu = mu

    def forward(self, x: Tensor) -> Tensor:
        # Returns x exactly; writing it as (1 + mu) x - mu x would round.
        return _Reversed.apply(x, self.mu)  # type: ignore[no-any-return, no-untyped-call]


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mu: float) -> Tensor:
        ctx.mu = mu
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override,unused-ignore]
        return -ctx.mu * grad, None


class Dropout(nn.Module):
    r"""Dropout whose mask depends on the row of the whole batch, not on the process that holds the row.

    .. math::  y = x \cdot m / (1 - p), \quad m \sim \text{Bernoulli}(1 - p)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout p must lie in [0, 1), got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        rows, mine = engine.shard_of_batch(len(x))
        # Draw the whole batch's mask and keep this process's rows, so that one process and many agree.
        return x * dropout_mask((rows, *x.shape[1:]), self.p, x)[mine]

    def extra_repr(self) -> str:
        return f"p={self.p}"


def dropout_mask(shape: Sequence[int], p: float, like: Tensor) -> Tensor:
    """1 / (1 - p) with probability 1 - p, else 0. One random byte each: p is rounded to 1/256, ten times as fast as Bernoulli."""
    count, level = math.prod(shape), min(255, max(1, round(256 * p)))
    words = torch.empty(-(-count // 8), dtype=torch.long, device=like.device).random_(-(2**63), None)
    mask = torch.empty(count, dtype=like.dtype, device=like.device)
    # The comparison writes numbers directly: through booleans it takes ten times as long.
    torch.ge(words.view(torch.uint8)[:count], level, out=mask).mul_(256 / (256 - level))
    if like.ndim == 4 and like.is_contiguous(memory_format=torch.channels_last):
        # A product of different memory layouts takes several times as long.
        rows, channels, height, width = shape
        return mask.view(rows, height, width, channels).permute(0, 3, 1, 2)
    return mask.view(*shape)


class _SharedStatistics(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation over the rows of all processes. Unlike torch's, it does not need a GPU."""

    def forward(self, input: Tensor) -> Tensor:
        if engine.world() == 1 or not self.training:
            return super().forward(input)
        self._check_input_dim(input)  # type: ignore[no-untyped-call]
        kind, input = input.dtype, input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        dims = [0, *range(2, input.ndim)]
        count = torch.full((1,), input.numel() / input.shape[1], dtype=input.dtype, device=input.device)
        total = engine.global_sum(count)
        mean = engine.global_sum_with_gradient(input.sum(dims)) / total
        shape = (1, -1, *[1] * (input.ndim - 2))
        centred = input - mean.view(shape)
        variance = engine.global_sum_with_gradient(centred.square().sum(dims)) / total
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            with torch.no_grad():
                self.running_mean.lerp_(mean, momentum)
                self.running_var.lerp_(variance * total / (total - 1), momentum)
        out = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            out = out * self.weight.view(shape) + self.bias.view(shape)
        return out.to(kind)


class BatchNorm1d(_SharedStatistics, nn.BatchNorm1d):
    pass


class BatchNorm2d(_SharedStatistics, nn.BatchNorm2d):
    pass


class BatchNorm3d(_SharedStatistics, nn.BatchNorm3d):
    pass


def share_statistics(module: nn.Module) -> nn.Module:
    """Make the batch normalisation and dropout of any network independent of the number of processes, in place."""
    shared: dict[type, type] = {nn.BatchNorm1d: BatchNorm1d, nn.BatchNorm2d: BatchNorm2d, nn.BatchNorm3d: BatchNorm3d}
    for name, child in module.named_children():
        if type(child) in shared:
            child.__class__ = shared[type(child)]  # same state, same hooks, only `forward` differs
        elif type(child) is nn.Dropout:
            replaced = Dropout(child.p).train(child.training)
            setattr(module, name, replaced)
        else:
            share_statistics(child)
    return module


class StridedPointwise(nn.Conv2d):
    """A strided 1x1 convolution, computed as a plain one on every s-th pixel, with the same result.

    With fewer than eight channels-last input channels, torch 2.13's own backward pass on a CPU writes out of bounds: the process
    crashes or, worse, does not.
    """

    def forward(self, input: Tensor) -> Tensor:
        down, across = self.stride
        return F.conv2d(input[..., ::down, ::across], self.weight, self.bias, groups=self.groups)


def guard_convolutions(module: nn.Module) -> nn.Module:
    """Turn every plain strided 1x1 convolution into a `StridedPointwise`, in place."""
    for child in module.modules():
        if type(child) is nn.Conv2d and child.kernel_size == (1, 1) and child.stride != (1, 1) and child.padding == (0, 0):
            child.__class__ = StridedPointwise  # same state, same hooks, only `forward` differs
    return module
