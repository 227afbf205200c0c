"""Groups: (label, bias...) as one integer, and sums over it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.errors import UserError


def tensor_of(values: Tensor, what: str) -> Tensor:
    """Numbers from a tensor, an array or a list; raises for anything else."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError):
        raise UserError(f"{what} must be numbers (codes from 0 on), got {type(values).__name__} of another type") from None


def group_id(columns: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    r"""Mixed-radix code of several categorical columns, the first one slowest.

    .. math::  g = \sum_k c_k \prod_{m>k} S_m \quad\in\ \{0, \dots, \prod_k S_k - 1\}

    >>> group_id([torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])], [2, 2]).tolist()
    [0, 1, 2, 3]
    """
    g = torch.zeros_like(columns[0])
    for column, size in zip(columns, sizes, strict=True):
        if column.numel() and not 0 <= int(column.min()) <= int(column.max()) < size:
            raise ValueError(f"values must lie in 0..{size - 1}, got {int(column.min())}..{int(column.max())}")
        g = g * size + column
    return g


def group_sums(values: Tensor, group: Tensor, num_groups: int) -> tuple[Tensor, Tensor]:
    """Per-group sum of `values` and per-group count, both of shape (G,)."""
    zero = values.new_zeros(num_groups)
    return zero.index_add(0, group, values), zero.index_add(0, group, torch.ones_like(values))


def pair_counts(y: Tensor, bias: Tensor, num_classes: int, num_values: int) -> Tensor:
    """Rows of every class and bias value, (C, V), as floats.

    >>> pair_counts(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), 2, 2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    counts = torch.zeros(num_classes, num_values, dtype=torch.float64)
    counts.view(-1).index_add_(0, group_id([y, bias], [num_classes, num_values]), torch.ones(len(y)).double())
    return counts


def lift(y: Tensor, bias: Tensor, num_classes: int, num_values: int) -> Tensor:
    r"""How much more often a class and a bias value occur together than if they were independent, (C, V).

    .. math::  l_{yb} = \frac{n_{yb} \, N}{n_y \, n_b}

    1 if independent; 0 for a pair that never occurs, or if a class or a value has no rows.

    >>> lift(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 0]), 2, 2)[0].tolist()  # 2 * 4 / (2 * 3), 0
    [1.3333333333333333, 0.0]
    """
    counts = pair_counts(y, bias, num_classes, num_values)
    expected = counts.sum(1, keepdim=True) * counts.sum(0, keepdim=True)
    return torch.where(expected > 0, counts * counts.sum() / expected.clamp(min=1), 0.0)
