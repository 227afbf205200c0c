r"""inverse_frequency: every (class, bias) group has the same total weight.

.. math::  w_i \propto \frac{1}{n_{g(i)}}, \qquad g = (y, \text{bias}), \quad y, \quad \text{or the bias alone}

Rows without a bias value have weight 1, the mean of the others.

Source: a common baseline; for example Sagawa et al., ICLR 2020, section 2 (with n the training counts).
Differs: nothing.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.repairs._contract import Outcome, Use, Work

SPLITS = ("train",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    by: Literal["group", "class", "bias"] = "group"  # what is balanced; group and bias need a bias column


def use(cfg: Config) -> Use:
    return "loss"


def apply(work: Work, cfg: Config) -> Outcome:
    weight = inverse_frequency(_codes(work.data, work.rows, cfg.by))
    return Outcome(work.rows, weight, weight)


def _codes(data: DataSet, rows: Tensor, by: str) -> Tensor:
    if by != "class" and not data.bias_names:
        raise UserError(
            f"inverse_frequency by={by} needs a bias column, but {data.name} has none; name one with --bias, or use by=class"
        )
    if by == "class" and data.multi_label:
        raise UserError(
            f"inverse_frequency by=class needs one class per row, but {data.name} has several labels; use by=bias, or balance"
        )
    if by == "class":
        return data.y[rows]
    if by == "group":
        return data.group[rows]
    known = (data.bias[rows] >= 0).all(1)
    code = torch.unique(data.bias[rows], dim=0, return_inverse=True)[1]
    return torch.where(known, code, -1)


def inverse_frequency(group: Tensor) -> Tensor:
    """A weight per row: the same total for every group, mean 1; rows without a group (-1) get 1.

    >>> inverse_frequency(torch.tensor([0, 0, 0, 1])).tolist()
    [0.6666666666666666, 0.6666666666666666, 0.6666666666666666, 2.0]
    """
    group = torch.as_tensor(group).long()
    known = group >= 0
    if not bool(known.any()):
        raise UserError("cannot balance groups: every row lacks a bias value")
    counts = group[known].bincount().double()
    raw = 1 / counts[group.clamp(min=0)].clamp(min=1)
    return torch.where(known, raw / raw[known].mean(), 1.0)
