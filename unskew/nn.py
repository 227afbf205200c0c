"""Layers that give the same result in one process and in many."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew import engine


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
        if engine.world() == 1:
            return F.dropout(x, self.p, training=True)
        rows, mine = engine.shard_of_batch(len(x))
        # The same draws as in one process: the whole batch's mask, of which this process keeps its rows.
        whole = F.dropout(torch.ones(rows, *x.shape[1:], dtype=x.dtype, device=x.device), self.p, training=True)
        return x * whole[mine]

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _SharedStatistics(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation over the rows of all processes. torch's own needs a GPU; this one does not."""

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
