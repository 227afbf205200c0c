r"""Error rates by bias value: how often a class is recognised, and how often it is given to other rows, for each bias value.

.. math::
    t_{cb} = P(\hat y = c \mid y = c, b), \qquad f_{cb} = P(\hat y = c \mid y \ne c, b), \qquad
    \Delta t_c = \max_b t_{cb} - \min_b t_{cb}, \quad \Delta f_c = \max_b f_{cb} - \min_b f_{cb}

t is the true-positive rate, f the false-positive rate. Every class against the rest; of a multi-label task every label. Both gaps
are 0 for all classes if the errors do not depend on the bias value once the class is known (equalised odds); a gap in t alone is
one of equal opportunity. With two classes the f of one is 1 minus the t of the other. Rates have Wilson's 95 % interval, gaps
Newcombe's from the two. A rate without rows, and a gap where fewer than two values have 30 rows, is undefined, with the reason.

Source: Hardt et al., "Equality of opportunity in supervised learning", NeurIPS 2016; Wilson, JASA 1927; Newcombe, "Interval
estimation for the difference between independent proportions", Statistics in Medicine 1998, method 10.
Differs: the papers compare two values; among several we take the extreme ones, so the interval of a gap is a little too narrow and
its value a little too high. Values of fewer than 30 rows are shown and marked, but do not make a gap.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import passes
from unskew.records import SMALL_GROUP, ClassRates, Estimate, Gap
from unskew.stats.groups import tensor_of
from unskew.stats.intervals import newcombe, wilson


def error_rates(
    logits_or_predictions: Tensor,
    y: Tensor,
    bias: Tensor,
    *,
    classes: Sequence[str] | None = None,
    values: Sequence[str] | None = None,
    name: str = "bias",
) -> dict[str, ClassRates]:
    """By class or label: true- and false-positive rates for each value of one bias column (codes, -1 = missing), and gaps.

    >>> rates = error_rates(torch.tensor([1, 0, 1, 0]), torch.tensor([1, 1, 0, 0]), torch.tensor([0, 0, 1, 1]))["1"]
    >>> rates.true_positive_rate["0"].value, rates.false_positive_rate["1"].value
    (0.5, 0.5)
    >>> rates.true_positive_rate["1"].reason
    'no row of 1 with bias 1'
    """
    scores, y, bias = tensor_of(logits_or_predictions, "predictions"), tensor_of(y, "labels"), tensor_of(bias, "bias values")
    if not len(scores) == len(y) == len(bias) or bias.ndim != 1:
        raise UserError(
            f"error rates need a bias value per row, got {len(scores)} predictions, {len(y)} labels, bias {tuple(bias.shape)}"
        )
    width = _width(scores, y) if classes is None else len(classes)
    classes = [str(c) for c in range(width)] if classes is None else classes
    values = [str(v) for v in range(int(bias.max()) + 1 if len(bias) else 0)] if values is None else values
    positives, hits, negatives, alarms = torch.zeros(4, len(values), width, dtype=torch.float64)  # each (V, C)
    for part in passes(len(y), width):
        said, true = _decided(scores[part], y[part], width)
        rows = (
            torch.stack([bias[part] == v for v in range(len(values))]).double()
            if len(values)
            else positives.new_zeros(0, len(said))
        )
        for into, these in ((positives, true), (hits, said & true), (negatives, ~true), (alarms, said & ~true)):
            into += rows @ these.double()
    found = {}
    for c, label in enumerate(classes):
        found_rate = {v: _rate(hits[k, c], positives[k, c], f"no row of {label} with {name} {v}") for k, v in enumerate(values)}
        alarm_rate = {
            v: _rate(alarms[k, c], negatives[k, c], f"no row without {label} with {name} {v}") for k, v in enumerate(values)
        }
        found[label] = ClassRates(
            found_rate, alarm_rate, gap(found_rate, name, f"rows of {label}"), gap(alarm_rate, name, f"rows without {label}")
        )
    return found


def gap(rates: Mapping[str, Estimate], name: str, what: str) -> Gap:
    """The highest rate minus the lowest, over values of at least 30 rows, with Newcombe's interval."""
    known = {v: e for v, e in rates.items() if e.n >= SMALL_GROUP and not math.isnan(e.value)}
    if len(known) < 2:
        reason = f"fewer than two values of {name} have {SMALL_GROUP} {what}"
        return Gap(Estimate(math.nan, math.nan, math.nan, 0, reason))
    high, low = max(known, key=lambda v: known[v].value), min(known, key=lambda v: known[v].value)
    if known[high].value == known[low].value:  # of equal rates, name two different values
        high, low = list(known)[:2]
    a, b = known[high], known[low]
    return Gap(Estimate(*newcombe((a.value, a.low, a.high), (b.value, b.low, b.high)), a.n + b.n), (high, low))


def _width(scores: Tensor, y: Tensor) -> int:
    """Labels, or classes that occur."""
    if y.ndim == 2:
        return y.shape[1]
    guess = scores.argmax(1) if scores.ndim == 2 else scores
    return 1 + max(int(y.max()), int(guess.max())) if len(y) else 0


def _decided(scores: Tensor, y: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """(said, true) as booleans (N, C): one class per row, or every label whose logit is above 0."""
    if y.ndim == 2:
        return scores > 0, y > 0
    guess = scores.argmax(1) if scores.ndim == 2 else scores.long()
    every = torch.arange(width)
    return guess[:, None] == every, y[:, None] == every


def _rate(part: Tensor, whole: Tensor, reason: str) -> Estimate:
    n, hits = int(whole), float(part)
    return Estimate(hits / n, *wilson(hits, n), n) if n else Estimate(math.nan, math.nan, math.nan, 0, reason)


FUNCTIONS = (error_rates,)
RANGE = (0.0, 1.0)
HIGHER = "the class is recognised more often (true positives), or given to other rows more often (false positives)"
