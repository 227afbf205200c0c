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
values that have 30 rows, its q the quantile of the sum of both terms. Above 100,000 rows the draws are by counts
(`unskew.stats.resample`), in one pass over the rows.

Source: Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015; Guo et al., "On calibration of
modern neural networks", ICML 2017; Efron, "Bootstrap methods", 1979.
Differs: Guo et al. have 15 bins and no interval. Ours, by the triangle inequality, is rather too wide than too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import Matrix, Rows, only
from unskew.core.rng import stream
from unskew.records import SMALL_GROUP, Bin, Calibration, Estimate, Gap
from unskew.stats.groups import tensor_of
from unskew.stats.resample import COUNTED, counts

BINS = 10
DRAWS = 400


def calibration(logits: Tensor, y: Tensor, *, bins: int = BINS, draws: int = DRAWS, seed: int = 0) -> Calibration:
    """Expected calibration error of logits (N, C) against class codes (N,) or zeros and ones (N, C).

    >>> sure = torch.tensor([[4.0, 0.0]] * 4)  # probability 0.982 for the first class, which three of four rows have
    >>> round(calibration(sure, torch.tensor([0, 0, 0, 1])).error.value, 3)
    0.232
    """
    found, _ = _calibration(_Given(tensor_of(logits, "logits"), tensor_of(y, "labels")), bins, draws, seed)
    return found


def calibration_by_bias(
    logits: Rows,
    y: Tensor,
    bias: Tensor,
    *,
    values: Sequence[str] | None = None,
    name: str = "bias",
    seed: int = 0,
    sure: Tensor | None = None,
) -> tuple[dict[str, Calibration], Gap]:
    """The calibration of the rows of each value of one bias column (codes, -1 = missing), and the gap between values.

    With `sure` (N,), the probability of the predicted class, `logits` may be the predicted classes (N,).
    """
    logits = logits if isinstance(logits, Matrix) else tensor_of(logits, "logits")
    y, bias = tensor_of(y, "labels"), tensor_of(bias, "bias values")
    values = [str(v) for v in range(int(bias.max()) + 1 if len(bias) else 0)] if values is None else values
    found, noise = {}, {}
    for k, value in enumerate(values):
        rows = bias == k
        given = _Given(only(logits, rows), y[rows], None if sure is None else sure[rows])
        found[value], noise[value] = _calibration(given, BINS, DRAWS, seed + k, f"no row with {name} {value}")
    judged = [v for v, c in found.items() if c.error.n >= SMALL_GROUP]
    if len(judged) < 2:
        reason = f"fewer than two values of {name} have {SMALL_GROUP} rows"
        return found, Gap(Estimate(math.nan, math.nan, math.nan, 0, reason))
    ranked = sorted(judged, key=lambda v: -found[v].error.value)
    high, low = ranked[0], ranked[-1]
    a, b = found[high].error, found[low].error
    gap = a.value - b.value
    return found, Gap(Estimate(gap, *_within(gap, noise[high] + noise[low], -1.0), a.n + b.n), (high, low))


@dataclass(frozen=True, slots=True)
class _Given:
    """What a calibration is of: logits (N, C), or predicted classes (N,) with their probabilities; and labels."""

    logits: Rows
    y: Tensor
    sure: Tensor | None = None

    def __post_init__(self) -> None:
        shape, y = tuple(self.logits.shape), self.y
        if len(shape) != (2 if self.sure is None else 1) or shape[0] != len(y) or (y.ndim == 2 and tuple(y.shape) != shape):
            raise UserError(f"calibration needs logits (N, C) and as many labels, got {shape} logits, {tuple(y.shape)} labels")

    def __call__(self, part: slice) -> tuple[Tensor, Tensor]:
        """(m, L) probabilities of these rows, and ones where they came true."""
        y = self.y[part]
        if self.sure is not None:
            return self.sure[part].double()[:, None], (self.logits[part] == y).double()[:, None]
        logits = self.logits[part].double()
        if y.ndim == 2:
            return logits.sigmoid(), y.double()
        sure, guess = logits.softmax(1).max(1, keepdim=True)
        return sure, (guess[:, 0] == y).double()[:, None]


def _calibration(given: _Given, bins: int, draws: int, seed: int, reason: str = "no rows") -> tuple[Calibration, Tensor]:
    """The calibration, and the noise in the sums of its bins: by how much they change, in every draw."""
    n = len(given.y)
    if not n:
        nothing = Estimate(math.nan, math.nan, math.nan, 0, reason)
        return Calibration(nothing, math.nan, math.nan, ()), torch.zeros(0, dtype=torch.float64)
    of = _Sums.of_many(given, bins, draws, seed) if n > COUNTED else _Sums.of_few(given, bins, draws, seed)
    honest = of.variance.sqrt() * torch.randn(
        draws, bins, generator=of.generator, dtype=torch.float64
    )  # if it is right as often as it says
    noises = [sums.abs().sum(1) / of.said for sums in (of.drawn - of.total, honest)]
    noise = max(noises, key=lambda drawn: float(drawn.quantile(0.95)))
    error = float(of.total.abs().sum()) / of.said
    edges = zip(range(bins), of.counts.tolist(), of.sure.tolist(), of.right.tolist(), strict=True)
    listed = tuple(Bin(k / bins, (k + 1) / bins, m, c / m, r / m) for k, m, c, r in edges if m)
    estimate = Estimate(error, *_within(error, noise, 0.0), n)
    return Calibration(estimate, of.mean_sure, of.mean_right, listed), noise


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over the rows by bin, (bins,), and the sums of residuals in every draw, (draws, bins)."""

    total: Tensor  # of residuals
    drawn: Tensor
    variance: Tensor  # of p (1 - p)
    counts: Tensor
    sure: Tensor
    right: Tensor
    mean_sure: float
    mean_right: float
    said: int  # probabilities: rows, times labels
    generator: torch.Generator

    @classmethod
    def of_few(cls, given: _Given, bins: int, draws: int, seed: int) -> "_Sums":
        sure, right = given(slice(None))
        place, residual = _residual(sure, right, bins)
        g = stream(seed, "calibration")
        drawn = torch.stack([_counts(len(sure), g) @ residual for _ in range(draws)])
        by_bin = [_by_bin(place, v, bins) for v in (sure * (1 - sure), sure, right)]
        counted = place.flatten().bincount(minlength=bins)
        means = float(sure.mean()), float(right.mean())
        return cls(residual.sum(0), drawn, by_bin[0], counted, by_bin[1], by_bin[2], *means, sure.numel(), g)

    @classmethod
    def of_many(cls, given: _Given, bins: int, draws: int, seed: int) -> "_Sums":
        """The same in one pass over the rows, chunk by chunk."""
        total, variance, sures, rights = torch.zeros(4, bins, dtype=torch.float64)
        drawn, rows = torch.zeros(draws, bins, dtype=torch.float64), torch.zeros(draws, 1, dtype=torch.float64)
        counted, said = torch.zeros(bins, dtype=torch.long), 0
        for part, often in counts(draws, len(given.y), seed):
            sure, right = given(part)
            place, residual = _residual(sure, right, bins)
            drawn += often.double() @ residual
            rows += often.double().sum(1, keepdim=True)
            total += residual.sum(0)
            for into, value in ((variance, sure * (1 - sure)), (sures, sure), (rights, right)):
                into += _by_bin(place, value, bins)
            counted += place.flatten().bincount(minlength=bins)
            said += sure.numel()
        means = float(sures.sum()) / said, float(rights.sum()) / said
        drawn *= len(given.y) / rows  # a draw by counts has about as many rows: sums are those of as many
        return cls(total, drawn, variance, counted, sures, rights, *means, said, stream(seed, "calibration"))


def _residual(sure: Tensor, right: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """((N, L) bin of each probability, (N, bins) sums of r - p of each row)."""
    place = ((sure * bins).ceil().long() - 1).clamp(0, bins - 1)
    return place, torch.zeros(len(sure), bins, dtype=torch.float64).scatter_add_(1, place, right - sure)


def _by_bin(place: Tensor, value: Tensor, bins: int) -> Tensor:
    return torch.zeros(bins, dtype=torch.float64).index_add_(0, place.flatten(), value.flatten())


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
