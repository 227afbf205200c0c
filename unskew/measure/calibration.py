r"""Calibration: how far a model's confidence is from how often it is right, over all rows or for each bias value.

.. math::
    ECE = \sum_{k=1}^{K} \frac{|B_k|}{n} \left| \frac{1}{|B_k|} \sum_{i \in B_k} (r_i - p_i) \right|,
    \qquad B_k = \{i : \tfrac{k-1}{K} < p_i \le \tfrac{k}{K}\}

K bins of equal width (10). With one class per row, p is the probability of the predicted class (softmax of the logits) and r is 1
if it is the true one; with several labels p is the probability of each label (sigmoid) and r is 1 if the row has it, all labels
together. In few rows the error is above 0 by chance alone, and quantiles of bootstrap draws lie higher still. The interval is
therefore ECE plus and minus q, within [0, 1]:

.. math::
    |\widehat{ECE} - ECE| \ \le\ \sum_k \tfrac1n |S_k - E S_k|, \quad S_k = \sum_{i \in B_k} (r_i - p_i), \qquad
    q = 95\ \% \text{ quantile of } \sum_k \tfrac1n |S_k^* - S_k| \text{ over 400 bootstrap draws of rows}

or, if it is larger, the same quantile for a calibrated model, where S_k is normal with mean 0 and variance the sum of p_i (1 - p_i)
(a bin that happens to be all right does not vary between draws). The gap is the largest minus the smallest error of the bias
values that have 30 rows, its q the quantile of the sum of both terms.

Source: Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015; Guo et al., "On calibration of
modern neural networks", ICML 2017; Efron, "Bootstrap methods", 1979.
Differs: Guo et al. have 15 bins and no interval. Ours, by the triangle inequality, is rather too wide than too narrow.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.records import SMALL_GROUP, Bin, Calibration, Estimate, Gap
from unskew.stats.groups import tensor_of

BINS = 10
DRAWS = 400


def calibration(logits: Tensor, y: Tensor, *, bins: int = BINS, draws: int = DRAWS, seed: int = 0) -> Calibration:
    """Expected calibration error of logits (N, C) against class codes (N,) or zeros and ones (N, C).

    >>> sure = torch.tensor([[4.0, 0.0]] * 4)  # probability 0.982 for the first class, which three of four rows have
    >>> round(calibration(sure, torch.tensor([0, 0, 0, 1])).error.value, 3)
    0.232
    """
    found, _ = _calibration(logits, y, bins, draws, seed)
    return found


def calibration_by_bias(
    logits: Tensor, y: Tensor, bias: Tensor, *, values: Sequence[str] | None = None, name: str = "bias", seed: int = 0
) -> tuple[dict[str, Calibration], Gap]:
    """The calibration of the rows of each value of one bias column (codes, -1 = missing), and the gap between values."""
    logits, y, bias = tensor_of(logits, "logits"), tensor_of(y, "labels"), tensor_of(bias, "bias values")
    values = [str(v) for v in range(int(bias.max()) + 1 if len(bias) else 0)] if values is None else values
    found, noise = {}, {}
    for k, value in enumerate(values):
        rows = bias == k
        found[value], noise[value] = _calibration(logits[rows], y[rows], BINS, DRAWS, seed + k, f"no row with {name} {value}")
    judged = [v for v, c in found.items() if c.error.n >= SMALL_GROUP]
    if len(judged) < 2:
        reason = f"fewer than two values of {name} have {SMALL_GROUP} rows"
        return found, Gap(Estimate(math.nan, math.nan, math.nan, 0, reason))
    ranked = sorted(judged, key=lambda v: -found[v].error.value)
    high, low = ranked[0], ranked[-1]
    a, b = found[high].error, found[low].error
    gap = a.value - b.value
    return found, Gap(Estimate(gap, *_within(gap, noise[high] + noise[low], -1.0), a.n + b.n), (high, low))


def _calibration(
    logits: Tensor, y: Tensor, bins: int, draws: int, seed: int, reason: str = "no rows"
) -> tuple[Calibration, Tensor]:
    """The calibration, and the noise in the sums of its bins: by how much they change, in every draw."""
    logits, y = tensor_of(logits, "logits").double(), tensor_of(y, "labels")
    if logits.ndim != 2 or len(logits) != len(y) or (y.ndim == 2 and y.shape != logits.shape):
        raise UserError(
            f"calibration needs logits (N, C) and as many labels, got {tuple(logits.shape)} logits, {tuple(y.shape)} labels"
        )
    n = len(y)
    if not n:
        nothing = Estimate(math.nan, math.nan, math.nan, 0, reason)
        return Calibration(nothing, math.nan, math.nan, ()), torch.zeros(0, dtype=torch.float64)
    if y.ndim == 2:
        sure, right = logits.sigmoid(), y.double()
    else:
        sure, guess = logits.softmax(1).max(1, keepdim=True)
        right = (guess[:, 0] == y).double()[:, None]
    place = ((sure * bins).ceil().long() - 1).clamp(0, bins - 1)  # (N, L)
    residual = torch.zeros(n, bins, dtype=torch.float64).scatter_add_(1, place, right - sure)
    g = stream(seed, "calibration")
    total = residual.sum(0)
    drawn = torch.stack([_counts(n, g) @ residual for _ in range(draws)])
    spread = torch.zeros(bins, dtype=torch.float64).index_add_(0, place.flatten(), (sure * (1 - sure)).flatten()).sqrt()
    honest = spread * torch.randn(draws, bins, generator=g, dtype=torch.float64)  # of a model that is right as often as it says
    noises = [sums.abs().sum(1) / sure.numel() for sums in (drawn - total, honest)]
    noise = max(noises, key=lambda drawn: float(drawn.quantile(0.95)))
    error = float(total.abs().sum()) / sure.numel()
    summed = [torch.zeros(bins, dtype=torch.float64).index_add_(0, place.flatten(), v.flatten()) for v in (sure, right)]
    counts = place.flatten().bincount(minlength=bins)
    edges = zip(range(bins), counts.tolist(), *(s.tolist() for s in summed), strict=True)
    listed = tuple(Bin(k / bins, (k + 1) / bins, m, c / m, r / m) for k, m, c, r in edges if m)
    estimate = Estimate(error, *_within(error, noise, 0.0), n)
    return Calibration(estimate, float(sure.mean()), float(right.mean()), listed), noise


def _counts(n: int, g: torch.Generator) -> Tensor:
    """How often each of n rows is in one bootstrap draw."""
    return torch.randint(0, n, (n,), generator=g).bincount(minlength=n).double()


def _within(value: float, noise: Tensor, least: float) -> tuple[float, float]:
    """The value plus and minus the 95 % quantile of the noise, within [least, 1]."""
    q = float(noise.quantile(0.95))
    return max(least, value - q), min(1.0, value + q)


FUNCTIONS = (calibration, calibration_by_bias)
RANGE = (0.0, 1.0)
HIGHER = "the model's confidence is further from how often it is right"
