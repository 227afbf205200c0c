r"""A quick trial before advice: on features, held out, does balancing against the suspected shortcut help, and what does it cost?

.. math::
    L_v(f) = \frac{\sum_i v_i\, \mathrm{CE}(f(x_i), y_i)}{\sum_i v_i}, \qquad G = L_w(\text{plain}) - L_w(\text{balanced}), \qquad
    K = L_b(\text{balanced}) - L_b(\text{plain})

w makes class and the biased reader's opinion independent (parts.opinion), so L_w is the loss where the shortcut tells nothing; b gives
every class the same say on the rows as they are. Two linear layers are compared, each on rows it was not fitted on: a plain one, and
one that was fitted with w. Balancing is advised if some nuisance explains the plain layer's errors for certain (the 95 % interval of
measure explained_errors stays above 0.6), the gain G is certain (1.645 standard errors) and at least the cost K, in loss or in accuracy,
and accuracy rises where the shortcut tells nothing and on the rows that lack it.

A nuisance that is part of what defines the class explains errors too. But there the rows that contradict it are simply hard, so
balancing gains little, and costs more on the rows as they are. Losses are compared rather than accuracies because a few dozen rows
that lack the shortcut decide: their losses tell what their right answers cannot.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.parts.opinion import EXPLAINS, balanced_accuracy, opinion_of, reference_logits
from unskew.stats.independence import effective_rows
from unskew.stats.readers import class_balanced, held_out_logits

CERTAIN = 1.645  # standard errors that the gain must exceed: one-sided 95 %
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
    gain: float  # fall of the loss where the shortcut tells nothing, in nats
    error: float  # standard error of `gain`
    cost: float  # rise of the class-balanced loss on the rows as they are
    judged: tuple[Tensor, Tensor] | None = None  # ids of the rows, and whether the simple model is right about them, held out

    def helps(self, certain: float) -> bool:
        """Whether balancing gains more than chance would, by so many standard errors, and at least what it costs."""
        rises = all(after > before for before, after in (self.independent, self.conflicting))
        return rises and self.gain > certain * self.error and self.pays

    @property
    def pays(self) -> bool:
        """Whether balancing gains at least what it costs on the rows as they are, in loss or in accuracy."""
        lost = self.class_balanced[0] - self.class_balanced[1]
        return self.gain >= self.cost or self.independent[1] - self.independent[0] >= lost

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
            "loss": {"gain": self.gain, "error": self.error, "cost": self.cost},
            **{name: {"before": getattr(self, name)[0], "after": getattr(self, name)[1]} for name in pairs},
        }


def trial(data: DataSet, rows: Tensor, features: Tensor, *, seed: int = 0, workers: int = 0) -> Trial:
    """Try balancing on these rows, one class each, with standardised features of a simple model."""
    y, classes = data.y[rows], len(data.classes)
    reference = reference_logits(features, y, classes, seed=seed)
    opinion = opinion_of(data, rows, y, classes, reference, features=features, seed=seed, workers=workers)
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    w, alike = opinion.weight, class_balanced(y)
    plain = _best(held_out_logits(x, y, classes, DECAYS, weight=alike, seed=seed), y, alike)
    balanced = _best(held_out_logits(x, y, classes, DECAYS, weight=w, seed=seed), y, w)
    away = (opinion.code != y).double()
    gain, error = loss_fall(plain, balanced, y, w)
    tried = Trial(
        supports=False,
        reason="",
        rows=len(y),
        conflicting_rows=int(away.sum()),
        nuisances=tuple((e.name, e.phrase, e.errors.value) for e in opinion.explanations),
        named=opinion.source,
        independent=(_accuracy(plain, y, w), _accuracy(balanced, y, w)),
        conflicting=(_accuracy(plain, y, away), _accuracy(balanced, y, away)),
        class_balanced=(balanced_accuracy(plain, y), balanced_accuracy(balanced, y)),
        effective=effective_rows(w),
        gain=gain,
        error=error,
        cost=-loss_fall(plain, balanced, y, alike)[0],
        judged=(rows, reference.argmax(1) == y),
    )
    supports, reason = decision(tried, opinion.explained)
    return dataclasses.replace(tried, supports=supports, reason=reason)


def decision(tried: Trial, explained: float) -> tuple[bool, str]:
    """Whether a remedy is supported, and why; `explained` is the best explanation's area under the curve."""
    if not tried.nuisances:
        return False, "these rows have no simple representation that could explain which of them a simple model gets wrong"
    if not tried.named:
        return False, (
            f"none of the {len(tried.nuisances)} simple representations tried explains for certain which rows a simple model gets wrong "
            f"(best {explained:.2f}, interval above {EXPLAINS} needed)"
        )
    phrases = [phrase for name, phrase, _ in tried.nuisances if name in tried.named]
    names = _listed(phrases)
    if tried.conflicting_rows < LEAST_CONFLICTING:
        return False, (
            f"the class of nearly every row shows in {names}: only {tried.conflicting_rows} rows contradict that, too few to learn from; "
            "weighting cannot help. Collect rows without it, or neutralise it"
        )
    before, after = (100 * value for value in tried.independent)
    tell = "tells" if len(phrases) == 1 else "tell"
    words = f"accuracy where {names} {tell} nothing: {before:.0f} % plain, {after:.0f} % balanced"
    if tried.helps(CERTAIN):
        return True, words
    if tried.gain > CERTAIN * tried.error and not tried.pays:
        lost = 100 * (tried.class_balanced[0] - tried.class_balanced[1])
        return False, (
            f"{words}; but balancing costs more on the rows as they are ({lost:.0f} points of class-balanced accuracy) than it gains, so "
            "this may be part of what defines the class"
        )
    if tried.gain > 0 and after > before:
        return False, f"{words}; with so few rows that contradict this the gain may be chance"
    return False, f"{words}; balancing gains too little, so this may be part of what defines the class"


def _listed(phrases: list[str]) -> str:
    """At most three of them; the rest as a number.

    >>> _listed(["the colour", "the border"]), _listed(["a", "b", "c", "d", "e"])
    ('the colour and the border', 'a, b and 3 more')
    """
    shown = phrases if len(phrases) <= 3 else [*phrases[:2], f"{len(phrases) - 2} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def loss_fall(plain: Tensor, balanced: Tensor, y: Tensor, weight: Tensor) -> tuple[float, float]:
    """(fall of the weighted mean cross-entropy from one model to the other, its standard error over rows)."""
    fall = (F.cross_entropy(plain, y, reduction="none") - F.cross_entropy(balanced, y, reduction="none")).double()
    mean = (weight * fall).sum() / weight.sum()
    return float(mean), float((weight * (fall - mean)).square().sum().sqrt() / weight.sum())


def _best(logits: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    loss = [float((weight * F.cross_entropy(z, y, reduction="none").double()).mean()) for z in logits]
    return logits[min(range(len(loss)), key=loss.__getitem__)]


def _accuracy(logits: Tensor, y: Tensor, weight: Tensor) -> float:
    right = (logits.argmax(1) == y).double()
    total = float(weight.sum())
    return float((weight * right).sum()) / total if total > 0 else float("nan")
