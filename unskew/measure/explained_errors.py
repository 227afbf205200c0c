r"""Explained errors: does a representation that points away from a row's class tell which rows a model gets wrong?

.. math::
    E(\phi) = P\big( g_i < g_j \mid i \text{ wrong},\ j \text{ right},\ y_i = y_j \big), \qquad
    g_i = \log P(y_i \mid \phi(x_i)) - \log p_{y_i}

======  ============  ===========================================================================================
g       gain          what the representation reveals of the row's class, by a reader that was not fitted on the row
wrong   wrong         the model's errors, on rows that it was not fitted on
E       .value        0.5: the representation has nothing to do with the errors; near 1: the model lives on what it shows
======  ============  ===========================================================================================

Pairs of rows are compared within a class only, so a class that is hard as a whole explains nothing. Where a shortcut is used, the
rows that lack it are the ones the model gets wrong. Where the representation is part of what defines the class, it explains errors
too: whether it may be used is a question for whoever knows the data.

The interval is a bootstrap over rows within (class, right or wrong).

Source: the area under the ROC curve as a rank statistic, Hanley and McNeil, Radiology 1982, stratified by class.
Differs: nothing.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream

LEAST = 10  # wrong rows, and right ones of the same classes, below which nothing is said


@dataclass(frozen=True, slots=True)
class Explained:
    value: float  # NaN where there are too few errors
    low: float
    high: float
    wrong: int  # rows behind it
    reason: str = ""


def explained_errors(gain: Tensor, wrong: Tensor, y: Tensor, *, bootstrap: int = 200, seed: int = 0) -> Explained:
    """The stratified area under the ROC curve, with interval.

    >>> gain, wrong = torch.tensor([0.9, 0.8, 0.1, 0.7] * 10), torch.tensor([False, False, True, False] * 10)
    >>> explained_errors(gain, wrong, torch.zeros(40, dtype=torch.long)).value
    1.0
    """
    gain, wrong, y = torch.as_tensor(gain).double(), torch.as_tensor(wrong).bool(), torch.as_tensor(y).long()
    if not len(gain) == len(wrong) == len(y):
        raise UserError(f"{len(gain)} gains, {len(wrong)} verdicts and {len(y)} labels: must be as many")
    strata = [(gain[(y == c) & wrong], gain[(y == c) & ~wrong]) for c in torch.unique(y).tolist()]
    strata = [(a, b) for a, b in strata if len(a) and len(b)]
    errors = sum(len(a) for a, _ in strata)
    if errors < LEAST or sum(len(b) for _, b in strata) < LEAST:
        return Explained(math.nan, math.nan, math.nan, errors, f"only {errors} errors, {LEAST} are needed")
    generator = stream(seed, "explained")
    drawn = [_area([(_again(a, generator), _again(b, generator)) for a, b in strata]) for _ in range(bootstrap)]
    ends = torch.tensor(drawn, dtype=torch.float64).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    return Explained(_area(strata), float(ends[0]), float(ends[1]), errors)


def _again(values: Tensor, generator: torch.Generator) -> Tensor:
    return values[torch.randint(0, len(values), (len(values),), generator=generator)]


def _area(strata: list[tuple[Tensor, Tensor]]) -> float:
    """The share of (wrong, right) pairs of one class in which the wrong row has the smaller gain; ties count half."""
    favourable = pairs = 0.0
    for wrong, right in strata:
        ordered = right.sort().values
        above = len(right) - torch.searchsorted(ordered, wrong, right=True)
        equal = torch.searchsorted(ordered, wrong, right=True) - torch.searchsorted(ordered, wrong)
        favourable += float(above.sum()) + 0.5 * float(equal.sum())
        pairs += len(wrong) * len(right)
    return favourable / pairs


FUNCTIONS = (explained_errors,)
RANGE = (0.0, 1.0)
HIGHER = "the representation explains more of the model's errors; 0.5 explains none"
