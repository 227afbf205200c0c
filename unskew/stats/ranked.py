r"""F1 and average precision of a label from a table of counts: rows by cell of the score, with and without the label.

.. math::
    F_1 = \frac{2 \sum_{k > z} p_k}{\sum_{k > z} t_k + \sum_k p_k}, \qquad
    AP = \sum_k \frac{p_k}{\sum_j p_j} \cdot \frac{\sum_{j \ge k} p_j}{\sum_{j \ge k} t_j}

Cells k ascend with the score, t_k rows are in one, p_k of them have the label, and the cells above z are those of scores above 0: F1
is exact, and AP is that of scores rounded to their cell. Half of the edges are quantiles of the rows with the label, on whose ranks AP
depends, and half of all rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

CELLS = 256


@dataclass(frozen=True, slots=True)
class Edges:
    """Where the cells of one label's scores end: a score on an edge is in the cell below it."""

    at: Tensor  # ascending
    zero: int  # the cells above this one have scores above 0

    def cell(self, score: Tensor) -> Tensor:
        return torch.searchsorted(self.at, score.double().contiguous())


def edges_of(score: Tensor, y: Tensor, cells: int = CELLS) -> Edges:
    """Edges from the scores of all rows.

    >>> edges = edges_of(torch.tensor([-2.0, -1.0, 1.0, 2.0]), torch.tensor([0, 1, 0, 1]), cells=4)
    >>> (edges.cell(torch.tensor([-1.0, 0.0, 0.1])) > edges.zero).tolist()
    [False, False, True]
    """
    score = score.double()
    found = [torch.zeros(1, dtype=torch.float64)]
    for part in (score, score[y > 0]):
        ordered = part.sort().values
        if len(ordered):
            found.append(ordered[torch.linspace(0, len(ordered) - 1, cells // 2).long()])
    at = torch.unique(torch.cat(found))
    return Edges(at, int(torch.searchsorted(at, torch.zeros(1, dtype=torch.float64))))


def f1_and_precision(table: Tensor, zero: int) -> tuple[Tensor, Tensor]:
    """((B,) F1, (B,) average precision) from counts (B, cells, 2): rows without the label, and with it.

    >>> f1, ap = f1_and_precision(torch.tensor([[[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]), zero=0)
    >>> round(float(f1), 4), float(ap)  # one of two predictions is correct, and it ranks first
    (0.6667, 1.0)
    """
    table = table.double().flip(1)  # the highest score first
    there, rows = table[:, :, 1], table.sum(2)
    above = table.shape[1] - 1 - zero
    true = there.sum(1)
    f1 = 2 * there[:, :above].sum(1) / (rows[:, :above].sum(1) + true).clamp(min=1e-12)
    precision = there.cumsum(1) / rows.cumsum(1).clamp(min=1e-12)
    return f1, (there * precision).sum(1) / true.clamp(min=1e-12)
