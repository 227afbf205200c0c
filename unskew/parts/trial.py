r"""A quick trial before advice: on features, held out, does balancing against the suspected shortcut help, and what does it cost?

.. math::
    L_v(f) = \frac{\sum_i v_i\, \mathrm{CE}(f(x_i), y_i)}{\sum_i v_i}, \qquad G = L_w(\text{plain}) - L_w(\text{balanced}), \qquad
    K = L_b(\text{balanced}) - L_b(\text{plain})

w makes class and the biased reader's opinion independent (parts.opinion), so L_w is the loss where the shortcut tells nothing; b gives
every class the same say on the rows as they are. Two linear layers are compared, each on rows it was not fitted on: a plain one, and
one that was fitted with balancing weights. Where there are several shortcuts, w is that of the readers alone (`Opinion.judging`), as
rows picked for a model's errors are no fair judge of a model. The fuller weights, which also favour such rows, are tried first, and w
itself (`weights=readers` of last_layer) where these are not supported. w leaves a model more of the further shortcuts, and so makes it
lean on them. So where w helps for certain, the fuller weights are advised all the same unless they do worse than the plain layer, by
more than a standard error. What is advised is what was tried.

Balancing is advised if some nuisance explains the plain layer's errors for certain (the 95 % interval of measure explained_errors stays
above 0.6), or one that can never be part of the subject tells the class; the gain G is certain (1.645 standard errors) and at least the
cost K, in loss or in accuracy (in accuracy alone, G must be an eighth of the loss that it lowers); and accuracy rises where the shortcut
tells nothing and on the rows that lack it.

Where the rows that lack the shortcut are too few to learn from, no weighting helps. So a second remedy is tried, if the caller can
compute it: a plain layer on pictures without what tells most of the class (stats.removal). It has to pass the same test, and the one
that gains more is advised. Fewer inputs often help where nothing is wrong, so what tells less than half of the class is left in.

A nuisance that is part of what defines the class explains errors too. But there the rows that contradict it are simply hard, so
balancing gains little, and costs more on the rows as they are. Losses are compared rather than accuracies because a few dozen rows
that lack the shortcut decide: their losses tell what their right answers cannot.

Beside it, `seen`: what a linear layer on pretrained features reveals of each row's class. Where that is next to nothing, a nuisance that
tells more is all that a model could learn (parts.findings).
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.parts.opinion import EXPLAINS, Opinion, balanced_accuracy, opinion_of, reference_logits
from unskew.stats.independence import effective_rows
from unskew.stats.readers import class_balanced, held_out_logits
from unskew.stats.removal import REMOVES

PLAINLY = 0.125  # of the loss: a fall that counts where balancing costs more loss than it gains, but fewer right answers
CERTAIN = 1.645  # standard errors that the gain must exceed: one-sided 95 %
LIKELY = 1.0  # standard errors by which balancing must help to call what it balances a shortcut, or do worse to be called harmful
DECAYS = (0.1, 1.0, 10.0)  # of the two layers
LEAST_CONFLICTING = 10  # rows whose class and opinion differ, below which nothing can be tried
MOST = 5000  # rows of a trial
MOSTLY = 0.5  # of the way from chance to every row right: what reads less of the class is not taken out
SEEN_DECAYS = (0.1, 1.0, 10.0, 100.0)
CLEARLY = 0.5  # of the way from chance to every row right: a layer that gets this far sees the class in the pictures
TAKEN_OUT = {"color": "colours", "border": "the border", "low_pass": "fine detail", "still": "what does not move"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What was tried and what came of it; accuracies are fractions of one, before and after."""

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
    loss: float  # of the plain layer, where the shortcut tells nothing: what `gain` lowers
    weights: str = "opinion"  # of last_layer: which of the weights were tried, "opinion" or "readers"
    removed: str = ""  # what was taken out of the pictures, one of TAKEN_OUT; empty: the rows were balanced
    judged: tuple[Tensor, Tensor] | None = None  # ids of the rows, and whether the simple model is right about them, held out
    seen: Tensor | None = (
        None  # of these rows: log P(y|x) - log p_y by pretrained features, held out; None: clearly seen, or no such features
    )

    def helps(self, certain: float) -> bool:
        """Whether the remedy gains more than chance would, by so many standard errors, and at least what it costs."""
        rises = all(after > before for before, after in (self.independent, self.conflicting))
        return rises and self.gain > certain * self.error and self.pays

    @property
    def harms(self) -> bool:
        """Whether the remedy is likely to do worse where the shortcut tells nothing."""
        return self.gain < -LIKELY * self.error

    @property
    def pays(self) -> bool:
        """Whether the remedy gains at least what it costs on the rows as they are: in loss, or in accuracy if the loss falls plainly."""
        lost = self.class_balanced[0] - self.class_balanced[1]
        as_accurate = self.independent[1] - self.independent[0] >= lost and self.gain >= PLAINLY * self.loss
        return self.gain >= self.cost or as_accurate

    def json(self) -> dict[str, Any]:
        pairs = ("independent", "conflicting", "class_balanced")
        return {
            "supports": self.supports,
            "reason": self.reason,
            "rows": self.rows,
            "conflicting_rows": self.conflicting_rows,
            "explained_errors": {name: value for name, _, value in self.nuisances},
            "named": list(self.named),
            "weights": self.weights,
            "removed": self.removed,
            "effective_rows": self.effective,
            "loss": {"before": self.loss, "gain": self.gain, "error": self.error, "cost": self.cost},
            **{name: {"before": getattr(self, name)[0], "after": getattr(self, name)[1]} for name in pairs},
        }


def trial(
    data: DataSet,
    rows: Tensor,
    features: Tensor,
    *,
    without: Callable[[str], Tensor] | None = None,
    pretrained: bool = False,
    seed: int = 0,
    workers: int = 0,
) -> Trial:
    """Try remedies on these rows, one class each, with standardised features of a simple model.

    `without` gives such features of the same rows when something is taken out of the pictures (stats.removal). `pretrained` says that
    the features are those of a pretrained network.
    """
    y, classes = data.y[rows], len(data.classes)
    reference = reference_logits(features, y, classes, seed=seed)
    opinion = opinion_of(data, rows, y, classes, reference, features=features, seed=seed, workers=workers)
    w, alike = opinion.judging, class_balanced(y)

    def layer(x: Tensor, weight: Tensor) -> Tensor:
        x = torch.cat([x.new_ones(len(x), 1), x], 1)
        return _best(held_out_logits(x, y, classes, DECAYS, weight=weight, seed=seed), y, weight)

    plain = layer(features, alike)
    away = (opinion.code != y).double()
    clear = _way_from_chance(balanced_accuracy(plain, y), classes) >= CLEARLY
    before = float((w * F.cross_entropy(plain, y, reduction="none").double()).sum() / w.sum())
    seen = revealed(features, y, classes, seed) if pretrained and not clear else None

    def judged(after: Tensor, named: tuple[str, ...], removed: str = "", weights: str = "opinion") -> Trial:
        gain, error = loss_fall(plain, after, y, w)
        tried = Trial(
            supports=False,
            reason="",
            rows=len(y),
            conflicting_rows=int(away.sum()),
            nuisances=tuple((e.name, e.phrase, e.errors.value) for e in opinion.explanations),
            named=named,
            independent=(_accuracy(plain, y, w), _accuracy(after, y, w)),
            conflicting=(_accuracy(plain, y, away), _accuracy(after, y, away)),
            class_balanced=(balanced_accuracy(plain, y), balanced_accuracy(after, y)),
            effective=effective_rows(w),
            gain=gain,
            error=error,
            cost=-loss_fall(plain, after, y, alike)[0],
            loss=before,
            weights=weights,
            removed=removed,
            judged=(rows, reference.argmax(1) == y),
            seen=seen,
        )
        supports, reason = decision(tried, opinion.explained, foreign=opinion.foreign)
        return dataclasses.replace(tried, supports=supports, reason=reason)

    balanced = judged(layer(features, opinion.weight), opinion.source)
    if not balanced.supports and opinion.further.shape[1]:
        by_readers = judged(layer(features, w), opinion.source, weights="readers")
        if by_readers.supports and not balanced.harms:
            balanced = dataclasses.replace(balanced, supports=True, reason=_change(balanced))
        else:
            balanced = by_readers
    taken = removable(opinion, classes) if without is not None else {}
    others = (
        [judged(layer(without(what), alike), named, removed=what) for what, named in taken.items()] if without is not None else []
    )
    return max((one for one in (balanced, *others) if one.supports), key=lambda one: one.gain, default=balanced)


def removable(opinion: Opinion, classes: int) -> dict[str, tuple[str, ...]]:
    """What can be taken out of the pictures, with the representations that go with it, where these tell most of the class."""
    found: dict[str, tuple[str, ...]] = {}
    for one in opinion.explanations:
        kind = one.name.partition(":")[0]
        if one.name in opinion.source and kind in REMOVES and _way_from_chance(one.accuracy, classes) >= MOSTLY:
            found[REMOVES[kind]] = (*found.get(REMOVES[kind], ()), one.name)
    return found


def revealed(features: Tensor, y: Tensor, classes: int, seed: int) -> Tensor:
    """(n,) log P(y|x) - log p_y of every row by a linear layer that was not fitted on it; its mean over H(Y) is a representation bias."""
    x, alike = torch.cat([features.new_ones(len(features), 1), features], 1), torch.ones(len(y), dtype=torch.float64)
    logits = _best(held_out_logits(x, y, classes, SEEN_DECAYS, weight=alike, seed=seed), y, alike).double()
    share = y.bincount(minlength=classes).double() / len(y)
    return logits.log_softmax(1).gather(1, y[:, None]).squeeze(1) - share[y].log()


def _way_from_chance(accuracy: float, classes: int) -> float:
    return (accuracy - 1 / classes) / (1 - 1 / classes)


def decision(tried: Trial, explained: float, *, foreign: bool = False) -> tuple[bool, str]:
    """Whether a remedy is supported, and why; `explained` is the best explanation's area under the curve, `foreign` whether what was
    balanced can never be part of the subject."""
    if not tried.nuisances:
        return False, "these rows have no simple representation that could explain which of them a simple model gets wrong"
    if not tried.named:
        return False, (
            f"none of the {len(tried.nuisances)} simple representations tried explains for certain which rows a simple model gets wrong "
            f"(best {explained:.2f}, interval above {EXPLAINS} needed)"
        )
    if tried.conflicting_rows < LEAST_CONFLICTING:
        return False, (
            f"the class of nearly every row shows in {_listed(_phrases(tried))}: only {tried.conflicting_rows} rows contradict that, too "
            "few to learn from; weighting cannot help. Collect rows without it, or neutralise it"
        )
    words, gained = _change(tried), 100 * (tried.independent[1] - tried.independent[0])
    perhaps = "a simple model hardly goes by it" if foreign else "this may be part of what defines the class"
    if tried.helps(CERTAIN):
        return True, words
    if tried.gain > CERTAIN * tried.error and not tried.pays:
        lost = 100 * (tried.class_balanced[0] - tried.class_balanced[1])
        costs = f"costs more on the rows as they are ({lost:.0f} points of class-balanced accuracy) than it gains"
        if lost < gained:
            costs = "raises the loss on the rows as they are by more than it lowers it there"
        return False, f"{words}; but balancing {costs}, so {perhaps}"
    if tried.gain > 0 and gained > 0:
        return False, f"{words}; with so few rows that contradict this the gain may be chance"
    return False, f"{words}; balancing gains too little, so {perhaps}"


def _phrases(tried: Trial) -> list[str]:
    return [phrase for name, phrase, _ in tried.nuisances if name in tried.named]


def _change(tried: Trial) -> str:
    """What the remedy did where the shortcut tells nothing."""
    phrases, (before, after) = _phrases(tried), tried.independent
    how = f"without {TAKEN_OUT[tried.removed]}" if tried.removed else "balanced"
    tell = "tells" if len(phrases) == 1 else "tell"
    return f"accuracy where {_listed(phrases)} {tell} nothing: {100 * before:.0f} % plain, {100 * after:.0f} % {how}"


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
