r"""Reducing bias amplification (RBA): shift predictions as little as needed to give every label its wanted shares of bias values.

.. math::
    \max_{\hat y} \sum_{il} s_{il}\, \hat y_{il} \quad \text{such that} \quad
    \Big\lvert \frac{\sum_i \hat y_{il}\, [a_i = v]}{\sum_i \hat y_{il}} - r_{lv} \Big\rvert \le \gamma \quad \text{for all } l, v

By Lagrange multipliers, the scores of a label are shifted by one number per bias value, and decided as before:

.. math::  \tilde s_{il} = s_{il} - \sum_v \mu_{lv} \big([a_i = v] - b_{lv}\big), \qquad
           b_{lv} = r_{lv} + \gamma,\ \mu_{lv} \ge 0 \quad \text{or} \quad b_{lv} = r_{lv} - \gamma,\ \mu_{lv} \le 0

A larger mu takes the label from rows of value v and gives it to others, so the share decreases monotonically. Several labels per
row: each label has its own constraints, and each mu is the smallest that meets its bound, by bisection. One class per row:
classes compete for rows, so the shifts of all classes and values are updated together, in shrinking steps against the violations,
and the best round is kept.

A row's shift depends on its bias value: calibrated scores need it at test time, and reveal it.

Source: Zhao, Wang, Yatskar, Ordonez, Chang, "Men also like shopping", EMNLP 2017 (margin 0.05); a baseline of Wang et al., ICCV
2019.
Differs: bisection (several labels) and shrinking steps (one class) instead of steps of a fixed size, so that the margin is met
and not just approached; the bias value is given, not predicted together with the labels. Labels predicted for fewer than `least`
rows before any shift are left alone, as in the paper.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError

ROUNDS = 50
DUAL_ROUNDS = 1000
STEPS = 60  # of a bisection
LEAST = 10  # rows for which a label must be predicted to have a share at all


@dataclass(frozen=True, slots=True)
class Calibrated:
    scores: Tensor  # (N, L) shifted
    shares: Tensor  # (L, V) of the decisions afterwards; NaN for a label predicted for no row
    violations: tuple[int, int]  # labels outside the margin, before and after


def rba(
    scores: Tensor, attribute: Tensor, ratios: Tensor, *, single: bool = False, margin: float = 0.05, least: int = LEAST
) -> Calibrated:
    """Shift `scores` (N, L) until the decisions have the shares `ratios` (L, V) of bias values, within `margin`.

    `single`: one class per row, the largest score; else every label above 0. Rows without a bias value (-1) are left alone.
    """
    if scores.ndim != 2 or len(scores) != len(attribute) or ratios.ndim != 2 or ratios.shape[0] != scores.shape[1]:
        raise UserError(
            f"rba: scores {tuple(scores.shape)}, attribute {tuple(attribute.shape)} and ratios {tuple(ratios.shape)} "
            "must be (N, L), (N,) and (L, V)"
        )
    if not 0 < margin < 1:
        raise UserError(f"rba: margin={margin:g} must lie in (0, 1)")
    known = attribute >= 0
    if bool(known.any()) and int(attribute.max()) >= ratios.shape[1]:
        raise UserError(f"rba: bias value {int(attribute.max())} has no ratio")
    moved = scores[known].double().clone()
    values = torch.nn.functional.one_hot(attribute[known], ratios.shape[1]).double()  # (n, V)
    ratios = ratios.double()
    watched = _said(moved, single).sum(0) >= least
    before = int(_violated(moved, values, ratios, single, margin, watched).any(1).sum())
    size = float(moved.std()) or 1.0  # steps are in units of the scores
    best, fewest = moved.clone(), before  # infeasible shares never converge: keep the best round
    for k in range(DUAL_ROUNDS if single else ROUNDS):
        wrong = _violated(moved, values, ratios, single, margin, watched)
        outside = int(wrong.any(1).sum())
        if outside < fewest:
            best, fewest = moved.clone(), outside
        if not outside:
            break
        if single:
            off = (_shares(_said(moved, single), values) - ratios).nan_to_num(-1.0)  # raise a class that is never predicted
            moved -= size * (k + 1) ** -0.5 * values @ torch.where(wrong, off, 0.0).T
        else:
            for label, v in wrong.nonzero().tolist():
                _meet(moved[:, label], values[:, v], float(ratios[label, v]), margin)
    out = scores.double().clone()
    out[known] = best
    return Calibrated(out.to(scores.dtype), _shares(_said(best, single), values), (before, fewest))


def training_ratios(y: Tensor, attribute: Tensor, num_labels: int, num_values: int) -> Tensor:
    """(L, V): of the rows with a label, the share of each bias value; equal shares for a label that no row has.

    >>> training_ratios(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, 2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    known = attribute >= 0
    sets = y[known].double() if y.ndim == 2 else torch.nn.functional.one_hot(y[known], num_labels).double()
    count = sets.T @ torch.nn.functional.one_hot(attribute[known], num_values).double()
    total = count.sum(1, keepdim=True)
    return torch.where(total > 0, count / total.clamp(min=1), 1 / num_values)


def _said(scores: Tensor, single: bool) -> Tensor:
    if single:
        return torch.nn.functional.one_hot(scores.argmax(1), scores.shape[1]).double()
    return (scores > 0).double()


def _shares(said: Tensor, values: Tensor) -> Tensor:
    return (said.T @ values) / said.sum(0)[:, None]


def _violated(scores: Tensor, values: Tensor, ratios: Tensor, single: bool, margin: float, watched: Tensor) -> Tensor:
    """(L, V) booleans; a label that is no longer predicted has no share, which counts as a violation."""
    near = (_shares(_said(scores, single), values) - ratios).abs() <= margin + 1e-9
    return ~near & watched[:, None]


def _meet(scores: Tensor, is_v: Tensor, wanted: float, margin: float) -> None:
    """Shift one label's scores by the smallest mu that brings the share of a value to its bound, in place."""
    own = scores.clone()

    def share(shifted: Tensor) -> float:
        said = shifted > 0
        return float((said * is_v).sum() / said.sum())  # NaN, which meets no bound, if the label is never predicted

    too_high = share(own) > wanted
    bound = min(1.0, wanted + margin) if too_high else max(0.0, wanted - margin)
    # The effect of a unit of mu: it takes from rows of the over-represented side and gives to the others.
    direction = -(is_v - bound) if too_high else is_v - bound

    def met(mu: float) -> bool:
        shifted = share(own + mu * direction)
        return shifted <= bound + 1e-12 if too_high else shifted >= bound - 1e-12

    high = 1.0
    while not met(high) and high < 1e12:
        high *= 2
    if not met(high):
        return  # no row of another value to give the label to: it remains outside the margin
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) else (middle, high)
    scores.copy_(own + high * direction)
