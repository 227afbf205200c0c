"""A biased model's opinion of every row, without bias labels: what the simplest reader that explains the errors would say.

A reference model is wrong on the rows that lack the shortcut, and on the hard ones. If simple representations (colour, texture,
border, ...) explain which rows those are, a reader of just these gives the opinion: it cannot see the content, so it errs on the
rows that lack the shortcut and on few others. If none does, the reference's own opinion has to do.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.features import Spec, compute, standard
from unskew.measure.explained_errors import Explained, explained_errors
from unskew.stats.independence import independence_weights
from unskew.stats.readers import biased_logits, class_balanced, held_out_logits, with_constant

EXPLAINS = 0.7  # area under the curve from which a representation counts as the reason for the errors
NEARLY = 0.15  # representations that explain nearly as much are read together
DECAYS = (1e-1, 1e-2)  # of the readers
REFERENCE = 3.0  # weight decay of the reference layer: simple enough to live on the shortcut
SIMPLE = (3e-1, 1e-1, 3e-2)  # weight decays of the biased reader to choose from: few rows need a larger one
SEEDS = 3  # ways to cut the rows into folds, averaged


@dataclass(frozen=True, slots=True)
class Explanation:
    """One simple representation, and how well it explains the reference's errors."""

    name: str
    phrase: str
    errors: Explained
    accuracy: float  # class-balanced, of its reader on rows that it was not fitted on


@dataclass(frozen=True, slots=True)
class Opinion:
    """The opinion of every row, and weights under which it is independent of the class."""

    index: Tensor  # (n,) sample ids
    code: Tensor  # (n,) the class that the biased model would say
    weight: Tensor  # (n,) mean 1
    source: tuple[str, ...]  # representations that were read; empty: the reference itself
    explanations: tuple[Explanation, ...]  # the best first

    @property
    def explained(self) -> float:
        """The best explanation's area under the curve; 0.5 if nothing was tried."""
        values = [e.errors.value for e in self.explanations if e.errors.value == e.errors.value]
        return max(values, default=0.5)

    def words(self) -> str:
        """Where the opinion comes from, in a sentence."""
        if self.source:
            names = ", ".join(e.phrase for e in self.explanations if e.name in self.source)
            return f"opinion: read from {names}, which explains the simple model's errors (area under the curve {self.explained:.2f})"
        return f"opinion: the simple model's own; no simple representation explains its errors (best {self.explained:.2f})"


def nuisances(data: DataSet) -> list[Spec]:
    """The simple representations that should not tell the class; columns of the source are not looked at."""
    return [one for one in standard(data)[0] if not one.content and not one.name.startswith("column")]


def balanced_accuracy(logits: Tensor, y: Tensor) -> float:
    return float((class_balanced(y) * (logits.argmax(-1) == y).double()).mean())


def explain(
    data: DataSet, rows: Tensor, y: Tensor, classes: int, wrong: Tensor, *, seed: int = 0, workers: int = 0
) -> tuple[list[Explanation], dict[str, Tensor]]:
    """How well each simple representation explains which of the rows, with classes `y`, are `wrong`; the best first. And the
    features of all rows, by name."""
    specs = nuisances(data)
    if not specs:
        return [], {}
    index, features = compute(data, specs, rows, workers=workers)
    here = torch.isin(rows, index)
    target, bad = y[here], wrong[here]
    found = []
    for one in specs:
        x = with_constant(features[one.name])
        logits = held_out_logits(x, target, classes, DECAYS, weight=class_balanced(target), seed=seed)
        loss = torch.stack([F.cross_entropy(z, target) for z in logits])
        best = logits[int(loss.argmin())]
        gain = best.double().log_softmax(1).gather(1, target[:, None]).squeeze(1)
        errors = explained_errors(gain, bad, target, seed=seed)
        found.append(Explanation(one.name, one.phrase, errors, balanced_accuracy(best, target)))
    known = {one.name: _filled(features[one.name], here) for one in specs}
    return sorted(found, key=lambda e: -_value(e)), known


def reference_logits(features: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Tensor:
    """Held-out logits of a simple linear layer on standardised features, for use as the reference."""
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    return biased_logits(x, y, classes, decay=REFERENCE, seed=seed, rounds=2)


def opinion_of(
    data: DataSet, rows: Tensor, y: Tensor, classes: int, reference: Tensor, *, seed: int = 0, workers: int = 0
) -> Opinion:
    """The opinion on these rows, whose classes are `y`; `reference` has a model's held-out logits of them."""
    wrong = reference.argmax(1) != y
    explanations, features = explain(data, rows, y, classes, wrong, seed=seed, workers=workers)
    best = max((_value(e) for e in explanations), default=0.0)
    chosen = [e.name for e in explanations if _value(e) >= max(EXPLAINS, best - NEARLY)]
    if not chosen:
        code = reference.argmax(1)
        return Opinion(rows, code, independence_weights(y, code, classes), (), tuple(explanations))
    x = with_constant(torch.cat([features[name] for name in chosen], 1))
    votes = _votes(x, y, classes, seed)
    weight = torch.stack([independence_weights(y, v.argmax(1), classes) for v in votes]).mean(0)
    code = torch.stack([v.softmax(1) for v in votes]).mean(0).argmax(1)
    return Opinion(rows, code, weight, tuple(chosen), tuple(explanations))


def biased_reader(x: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Tensor:
    """(n, C) held-out log probabilities of a biased reader, averaged over ways to cut the rows; x as of `with_constant`."""
    return torch.stack([v.softmax(1) for v in _votes(x, y, classes, seed)]).mean(0).clamp(min=1e-30).log()


def _votes(x: Tensor, y: Tensor, classes: int, seed: int) -> list[Tensor]:
    decay = _best_decay(x, y, classes, seed)
    return [biased_logits(x, y, classes, decay=decay, seed=seed + k) for k in range(SEEDS)]


def _best_decay(x: Tensor, y: Tensor, classes: int, seed: int) -> float:
    """The weight decay whose reader reads held-out rows best."""
    logits = held_out_logits(x, y, classes, SIMPLE, weight=class_balanced(y), seed=seed)
    loss = [float(F.cross_entropy(z, y)) for z in logits]
    return SIMPLE[loss.index(min(loss))]


def _value(e: Explanation) -> float:
    return e.errors.value if e.errors.value == e.errors.value else 0.0


def _filled(block: Tensor, here: Tensor) -> Tensor:
    """Features of all rows; an unreadable one has the mean of the others."""
    full = block.mean(0).expand(len(here), -1).clone()
    full[here] = block
    return full
