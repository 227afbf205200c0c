"""What a set of weights does to the shares of classes and of bias values, counted in passes over the rows."""

import torch
from torch import Tensor

from unskew.core.matrix import slices
from unskew.data.dataset import DataSet
from unskew.records import BiasShares, Composition

MOST_VALUES = 40  # of a bias column that has a table


def composition(data: DataSet, index: Tensor, weight: Tensor) -> Composition:
    """The share of every (class, bias value) pair before and after weighting, one table per bias column, and of every class."""
    columns = [k for k, values in enumerate(data.bias_values) if len(values) <= MOST_VALUES]
    totals = torch.zeros(2, len(data.classes), dtype=torch.float64)
    tables = [torch.zeros(2, len(data.classes), len(data.bias_values[k]), dtype=torch.float64) for k in columns]
    for part in slices(len(index)):
        rows = index[part]
        w = torch.stack([torch.ones(len(rows), dtype=torch.float64), weight[part].double()])
        member = data.y[rows].double() if data.multi_label else _one_hot(data.y[rows], len(data.classes))
        totals += w @ member
        for k, table in zip(columns, tables, strict=True):
            code = _one_hot(data.bias[rows, k], len(data.bias_values[k]))
            for which in range(2):
                table[which] += member.T @ (w[which, :, None] * code)
    sums = torch.tensor([float(len(index)), float(weight.double().sum())])[:, None].double()
    before, after = (totals / sums).tolist()
    by_bias = [
        BiasShares(bias=data.bias_names[k], columns=list(data.bias_values[k]), before=_to_one(table[0]), after=_to_one(table[1]))
        for k, table in zip(columns, tables, strict=True)
    ]
    return Composition(classes=list(data.classes), before=before, after=after, by_bias=by_bias)


def _one_hot(code: Tensor, size: int) -> Tensor:
    """(n, size) doubles; a row whose code is missing, -1, has none."""
    hot = torch.nn.functional.one_hot(code.clamp(min=0), size).double()
    return hot * (code >= 0)[:, None]


def _to_one(table: Tensor) -> list[list[float]]:
    shares: list[list[float]] = (table / table.sum(1, keepdim=True).clamp(min=1e-12)).tolist()
    return shares
