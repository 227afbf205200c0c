r"""Label errors: rows whose label a probe contradicts with as much confidence as it has in rows of the other class.

.. math::
    t_k = \frac{1}{n_k} \sum_{i: y_i = k} p_{ik}, \qquad
    \text{error}_i \iff k^* \ne y_i, \quad k^* = \arg\max_{k:\, p_{ik} \ge t_k} p_{ik}, \quad \arg\max_k p_{ik} \ne y_i

======  ==========  =========================================================================================
p       p           (n, C) probabilities of the classes, each row judged by a probe that was not fitted on it
t       thresholds  the mean probability of a class on the rows that have it
k*      likely      the class that the row seems to have
======  ==========  =========================================================================================

A class that the probe is modest about has a low threshold, so rows are compared with their likes. A row that lacks a shortcut on
which the probe lives looks the same: such rows must be told apart by other means (measure slices).

Source: Northcutt, Jiang, Chuang, "Confident learning: estimating uncertainty in dataset labels", JAIR 2021, equations 1 and 2 and
its first way to prune (off-diagonal entries of the confident joint), without rows that the probe gives their own label.
Differs: nothing from the paper. cleanlab's `filter_by="confident_learning"` finds the same rows, except that where two classes reach
their thresholds and a third, which does not, is more probable than both, it takes the third.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError


@dataclass(frozen=True, slots=True)
class LabelErrors:
    """Which rows are probably mislabelled; `order` has them, the surest first."""

    wrong: Tensor  # (n,) booleans
    likely: Tensor  # (n,) the class that the row seems to have; its own where `wrong` is false
    confidence: Tensor  # (n,) probability of the row's own label: the lower, the more doubtful
    order: Tensor
    thresholds: Tensor  # (C,)


def label_errors(p: Tensor, y: Tensor) -> LabelErrors:
    """Probable label errors, from held-out probabilities (n, C) and labels (n,).

    >>> p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.1, 0.9], [0.7, 0.3]])
    >>> label_errors(p, torch.tensor([0, 0, 0, 1, 1, 1])).order.tolist()  # t = 0.6 and 0.667
    [2, 5]
    """
    p, y = torch.as_tensor(p).double(), torch.as_tensor(y).long()
    if p.ndim != 2 or len(p) != len(y):
        raise UserError(f"label errors: probabilities of shape {tuple(p.shape)} for {len(y)} labels; one row per label is needed")
    counts = y.bincount(minlength=p.shape[1])
    sums = torch.zeros(p.shape[1], dtype=torch.float64).index_add_(0, y, p.gather(1, y[:, None]).squeeze(1))
    thresholds = torch.where(counts > 0, sums / counts.clamp(min=1), torch.inf)
    sure = p >= thresholds - 1e-6  # a probability that equals the mean of its class counts as sure
    best = torch.where(sure, p, -1.0).argmax(1)
    wrong = sure.any(1) & (best != y) & (p.argmax(1) != y)
    own = p.gather(1, y[:, None]).squeeze(1)
    rows = wrong.nonzero().flatten()
    return LabelErrors(wrong, torch.where(wrong, best, y), own, rows[own[rows].argsort(stable=True)], thresholds)


FUNCTIONS = (label_errors,)
RANGE = (0.0, 1.0)
HIGHER = "the row's own label is more likely"
