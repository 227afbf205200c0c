r"""A quick trial before advice: on features, held out, does balancing against the suspected shortcut help, and what does it cost?

.. math::
    A_w = \frac{\sum_i w_i\, [\hat y_i = y_i]}{\sum_i w_i}, \qquad
    \text{advise if } E(\phi) \ge 0.6 \text{ for some nuisance } \phi \text{ and } A_w \text{ rises by 3 points or more, both for certain}

w makes class and the biased reader's opinion independent (parts.opinion), so A_w is the accuracy where the shortcut tells nothing.
"For certain": the 95 % interval of E stays above 0.6, and the rise is above its standard error.
Two linear layers are compared, each on rows it was not fitted on: a plain one, and one that was fitted with w. A nuisance that is
part of what defines the class explains errors too, but there balancing gains nothing: its contradicting rows are simply hard.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.parts.opinion import EXPLAINS, Opinion, balanced_accuracy, opinion_of, reference_logits
from unskew.stats.independence import effective_rows
from unskew.stats.readers import class_balanced, held_out_logits

GAIN = 0.03  # rise of the accuracy where the shortcut tells nothing
CERTAIN = 1.0  # standard errors that the rise must exceed, besides GAIN
DECAYS = (0.1, 1.0, 10.0)  # of the two layers
LEAST_CONFLICTING = 10  # rows whose class and opinion differ, below which nothing can be tried
MOST = 5000  # rows of a trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What was tried and what came of it; accuracies are fractions of one, before and after balancing."""

    supports: bool
    reason: str  # in a sentence
    rows: int
    conflicting_rows: int  # rows whose class and opinion differ
    nuisances: tuple[tuple[str, str, float], ...]  # (name, phrase, explained errors) of those tried, the best first
    named: tuple[str, ...]  # the ones that were read for the opinion
    independent: tuple[float, float]  # accuracy where the shortcut tells nothing
    conflicting: tuple[float, float]  # accuracy on rows that seem to lack the shortcut
    class_balanced: tuple[float, float]  # on the rows as they are: what giving up the shortcut costs there
    effective: float  # rows
    error: float  # standard error of the rise of `independent`
    judged: tuple[Tensor, Tensor] | None = None  # ids of the rows, and whether the simple model is right about them, held out

    def json(self) -> dict[str, Any]:
        pairs = ("independent", "conflicting", "class_balanced")
        return {
            "supports": self.supports,
            "reason": self.reason,
            "rows": self.rows,
            "conflicting_rows": self.conflicting_rows,
            "explained_errors": {name: value for name, _, value in self.nuisances},
            "named": list(self.named),
            "effective_rows": self.effective,
            "gain_error": self.error,
            **{name: {"before": getattr(self, name)[0], "after": getattr(self, name)[1]} for name in pairs},
        }


def trial(data: DataSet, rows: Tensor, features: Tensor, *, seed: int = 0, workers: int = 0) -> Trial:
    """Try balancing on these rows, one class each, with standardised features of a simple model."""
    y, classes = data.y[rows], len(data.classes)
    reference = reference_logits(features, y, classes, seed=seed)
    opinion = opinion_of(data, rows, y, classes, reference, features=features, seed=seed, workers=workers)
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    w = opinion.weight
    plain = _best(held_out_logits(x, y, classes, DECAYS, weight=class_balanced(y), seed=seed), y, class_balanced(y))
    balanced = _best(held_out_logits(x, y, classes, DECAYS, weight=w, seed=seed), y, w)
    away = opinion.code != y
    independent = (_accuracy(plain, y, w), _accuracy(balanced, y, w))
    conflicting = (_accuracy(plain, y, away.double()), _accuracy(balanced, y, away.double()))
    error = rise_error(plain, balanced, y, w)
    supports, reason = _decision(opinion, int(away.sum()), independent, conflicting, error)
    return Trial(
        supports=supports,
        reason=reason,
        rows=len(y),
        conflicting_rows=int(away.sum()),
        nuisances=tuple((e.name, e.phrase, e.errors.value) for e in opinion.explanations),
        named=opinion.source,
        independent=independent,
        conflicting=conflicting,
        class_balanced=(balanced_accuracy(plain, y), balanced_accuracy(balanced, y)),
        effective=effective_rows(w),
        error=error,
        judged=(rows, reference.argmax(1) == y),
    )


def _decision(
    opinion: Opinion, away: int, independent: tuple[float, float], conflicting: tuple[float, float], error: float
) -> tuple[bool, str]:
    tried = f"{len(opinion.explanations)} simple representations tried"
    if not opinion.explanations:
        return False, "these rows have no simple representation that could explain which of them a simple model gets wrong"
    if not opinion.source:
        return (
            False,
            f"none of the {tried} explains for certain which rows a simple model gets wrong (best {opinion.explained:.2f}, "
            f"interval above {EXPLAINS} needed)",
        )
    names = ", ".join(e.phrase for e in opinion.explanations if e.name in opinion.source)
    if away < LEAST_CONFLICTING:
        return False, (
            f"{names} tells the class of nearly every row: only {away} rows contradict it, too few to learn from; weighting cannot "
            "help. Collect rows without it, or neutralise it"
        )
    gain = 100 * (independent[1] - independent[0])
    words = f"accuracy where {names} tells nothing: {100 * independent[0]:.0f} % plain, {100 * independent[1]:.0f} % balanced"
    if gain < 100 * GAIN or conflicting[1] <= conflicting[0]:
        return False, f"{words}; balancing gains too little, so {names} may be part of what defines the class"
    if gain <= 100 * CERTAIN * error:
        return False, f"{words}; with so few rows that lack it the gain may be chance (standard error {100 * error:.1f} points)"
    return True, words


def _best(logits: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    loss = [float((weight * F.cross_entropy(z, y, reduction="none").double()).mean()) for z in logits]
    return logits[min(range(len(loss)), key=loss.__getitem__)]


def rise_error(plain: Tensor, balanced: Tensor, y: Tensor, weight: Tensor) -> float:
    """Standard error of the rise in weighted accuracy, over rows: both layers judge the same ones."""
    rise = (balanced.argmax(1) == y).double() - (plain.argmax(1) == y).double()
    mean = (weight * rise).sum() / weight.sum()
    return float((weight * (rise - mean)).square().sum().sqrt() / weight.sum())


def _accuracy(logits: Tensor, y: Tensor, weight: Tensor) -> float:
    right = (logits.argmax(1) == y).double()
    total = float(weight.sum())
    return float((weight * right).sum()) / total if total > 0 else float("nan")
