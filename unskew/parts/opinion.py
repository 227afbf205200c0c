"""A biased model's opinion of every row, without bias labels: what the simplest reader that explains the errors would say.

A reference model is wrong on the rows that lack the shortcut, and on the hard ones. If simple representations (colour, texture,
border, ...), or what can never be part of the subject (a logo at the edge, the make of the camera, ...), explain which rows those are, a
reader of just these gives the opinion: it cannot see the content, so it errs on the rows that lack the shortcut and on few others. Where
nothing explains the errors for certain, what can never be part of the subject is read all the same if it tells the class: a model that is
often wrong anyway may go by it too. If there is no such thing either, the reference's own opinion has to do.

A second shortcut hides behind the first, and a model that may not use the first would lean on it all the more. So where the reference can
be fitted again, it is fitted with the weights found so far, and what explains the errors it then makes is read too, for a further opinion.
What is left to read is weaker, so that reader errs on many rows that do have the second shortcut. Rows that it and the reference both get
wrong are surer to lack it, but fewer. The class is made independent of the one and of the other, and the two weights are averaged.

Balancing against the only shortcut there is leaves the readers little to explain; against one of two, most of it. So there is a further
shortcut if the errors are still explained for certain, or at least half as well as before the first was balanced.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.features import Spec, compute, standard
from unskew.measure.explained_errors import Explained, explained_errors
from unskew.parts.answers import expected
from unskew.stats.independence import LEAST_EFFECTIVE, effective_rows, independence_weights
from unskew.stats.intervals import Z95
from unskew.stats.readers import biased_logits, class_balanced, held_out_logits, with_constant

EXPLAINS = 0.6  # the area under the curve from which a representation explains errors; the best one's interval must stay above it
STILL = 0.55  # the same of a further shortcut, where errors are still explained at least half as well as before the first was balanced
HALF = 0.5
NEARLY = 0.15  # representations that explain nearly as much are read together
TELLS = 0.05  # of the label: what can never be part of the subject and surely tells this much needs not explain errors
DECAYS = (1e-1, 1e-2)  # of the readers
REFERENCE = 3.0  # weight decay of the reference layer: simple enough to live on the shortcut
SIMPLE = (3e-1, 1e-1, 3e-2)  # weight decays of the biased reader to choose from: few rows need a larger one
MOST_OPINIONS = 3
SEEDS = 3  # ways to cut the rows into folds, averaged


@dataclass(frozen=True, slots=True)
class Explanation:
    """One simple representation, and how well it explains the reference's errors."""

    name: str
    phrase: str
    errors: Explained
    accuracy: float  # class-balanced, of its reader on rows that it was not fitted on
    foreign: bool = False  # whether it can never be part of the subject
    tells: float = 0.0  # at least this share of the label, by the lower end of a 95 % interval


@dataclass(frozen=True, slots=True)
class Opinion:
    """The opinion of every row, and weights under which it is independent of the class."""

    index: Tensor  # (n,) sample ids
    code: Tensor  # (n,) the class that the biased model would say
    further: Tensor  # (n, K) what readers of further shortcuts would say; K is often 0
    weight: Tensor  # (n,) mean 1
    judging: Tensor  # (n,) by the readers alone, for a trial: rows picked for a model's errors are no fair judge of a model
    source: tuple[str, ...]  # representations that were read; empty: the reference itself
    explanations: tuple[Explanation, ...]  # the best first

    @property
    def explained(self) -> float:
        """The best explanation's area under the curve; 0.5 if nothing was tried."""
        values = [e.errors.value for e in self.explanations if e.errors.value == e.errors.value]
        return max(values, default=0.5)

    @property
    def foreign(self) -> bool:
        """Whether it was read from what can never be part of the subject, though that does not explain the errors for certain."""
        return bool(self.source) and not _chosen(list(self.explanations))

    def words(self) -> str:
        """Where the opinion comes from, in a sentence."""
        if self.source:
            names = ", ".join(e.phrase for e in self.explanations if e.name in self.source)
            more = f"; {1 + self.further.shape[1]} separate shortcuts are balanced together" if self.further.shape[1] else ""
            why = f"which explains the simple model's errors (area under the curve {self.explained:.2f})"
            if self.foreign:
                why = "which tells the class and can never be part of the subject"
            return f"opinion: read from {names}, {why}{more}"
        return f"opinion: the simple model's own; no simple representation explains its errors (best {self.explained:.2f})"


def nuisances(data: DataSet) -> list[Spec]:
    """What a biased model's opinion may be read from: simple representations, and probes of what can never be part of the subject, such as
    a logo at the edge or the make of the camera.

    Not looked at: columns of the source, an audit's other probes, and what the user expects to show the class.
    """
    answered = expected(data)
    return [one for one in standard(data)[0] if _may_mislead(one) and one.name not in answered]


def simple_representations(data: DataSet) -> list[Spec]:
    """The nuisances that are no probes: what each row shows by itself."""
    return [one for one in nuisances(data) if not one.kind.probe]


def _may_mislead(one: Spec) -> bool:
    return not one.content and (one.foreign or not one.kind.probe) and not one.name.startswith("column")


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
    known = {one.name: _filled(features[one.name], here) for one in specs}
    return _ranked(specs, known, y, classes, wrong, class_balanced(y), seed), known


def _ranked(
    specs: list[Spec], features: dict[str, Tensor], y: Tensor, classes: int, wrong: Tensor, weight: Tensor, seed: int
) -> list[Explanation]:
    """The explanations by readers that were fitted with these weights, the best first."""
    found = []
    for one in specs:
        logits = held_out_logits(with_constant(features[one.name]), y, classes, DECAYS, weight=weight, seed=seed)
        best = logits[_least_loss(logits, y, weight)]
        gain = best.double().log_softmax(1).gather(1, y[:, None]).squeeze(1)
        errors = explained_errors(gain, wrong, y, seed=seed)
        tells = 1 + _surely(gain, weight) / math.log(classes)
        found.append(Explanation(one.name, one.phrase, errors, balanced_accuracy(best, y), one.foreign, tells))
    return sorted(found, key=lambda e: -_value(e))


def _surely(values: Tensor, weight: Tensor) -> float:
    """The lower end of the 95 % interval of a weighted mean."""
    mean = (weight * values).sum() / weight.sum()
    return float(mean - Z95 * (weight * (values - mean)).square().sum().sqrt() / weight.sum())


def reference_logits(features: Tensor, y: Tensor, classes: int, *, weight: Tensor | None = None, seed: int = 0) -> Tensor:
    """Held-out logits of a simple linear layer on standardised features, for use as the reference."""
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    return biased_logits(x, y, classes, decay=REFERENCE, weight=weight, seed=seed, rounds=2)


def opinion_of(
    data: DataSet,
    rows: Tensor,
    y: Tensor,
    classes: int,
    reference: Tensor,
    *,
    features: Tensor | None = None,
    seed: int = 0,
    workers: int = 0,
) -> Opinion:
    """The opinion on these rows, whose classes are `y`; `reference` has a model's held-out logits of them.

    With the `features` that the reference is a linear layer of, further shortcuts are looked for too.
    """
    explanations, simple = explain(data, rows, y, classes, reference.argmax(1) != y, seed=seed, workers=workers)
    chosen = _chosen(explanations) or _foreign(explanations)
    if not chosen:
        code = reference.argmax(1)
        weight = independence_weights(y, code, classes)
        return Opinion(rows, code, code.new_empty(len(y), 0), weight, weight, (), tuple(explanations))
    votes = _votes(simple, chosen, y, classes, class_balanced(y), seed)
    said, sure = [votes.argmax(2)], [votes.argmax(2)]
    weight = judging = _weights(y, said, classes)
    names, specs = list(chosen), nuisances(data)
    while features is not None and len(said) < MOST_OPINIONS:
        again = [reference_logits(features, y, classes, weight=weight, seed=seed).argmax(1)]
        chosen = _left(_ranked(specs, simple, y, classes, again[0] != y, weight, seed), explanations)
        if not chosen:
            break
        again += [reference_logits(features, y, classes, weight=weight, seed=seed + k).argmax(1) for k in range(1, SEEDS)]
        read = _votes(simple, chosen, y, classes, weight, seed).argmax(2)
        both = torch.where((read != y) & (torch.stack(again) != y), read, y)
        by_reader = _weights(y, [*said, read], classes)
        balanced = (by_reader + _weights(y, [*sure, both], classes)) / 2
        if effective_rows(balanced) < LEAST_EFFECTIVE * classes:
            break  # too few rows contradict all of them
        said, sure, weight, judging = [*said, read], [*sure, both], balanced, by_reader
        names += [name for name in chosen if name not in names]
    further = torch.stack([read.mode(0).values for read in said], 1)[:, 1:]
    return Opinion(rows, votes.softmax(2).mean(0).argmax(1), further, weight, judging, tuple(names), tuple(explanations))


def _left(now: list[Explanation], before: list[Explanation]) -> list[str]:
    """What explains the errors of the balanced reference, if it surely does, or does so at least half as well as anything did before."""
    as_well = max(map(_value, now)) - 0.5 >= HALF * (max(map(_value, before)) - 0.5)
    return _chosen(now) or (_chosen(now, STILL) if as_well else [])


def _chosen(explanations: list[Explanation], least: float = EXPLAINS) -> list[str]:
    """What explains the errors, if the best explanation is certain; what explains nearly as much; and what explains them for certain
    and reads the class as well as the best does: with it the opinion errs on fewer rows that have the shortcut."""
    certain = [e for e in explanations if e.errors.low >= least]
    if not certain:
        return []
    best = max(certain, key=_value)
    nearly = max(min(EXPLAINS, _value(best)), _value(best) - NEARLY)
    return [e.name for e in explanations if _value(e) >= nearly or (e in certain and e.accuracy >= best.accuracy)]


def _foreign(explanations: list[Explanation]) -> list[str]:
    """What can never be part of the subject and surely tells the class, where nothing explains the errors for certain: of several, the
    one that explains most."""
    return [e.name for e in explanations if e.foreign and e.tells >= TELLS][:1]


def _votes(features: dict[str, Tensor], chosen: list[str], y: Tensor, classes: int, weight: Tensor, seed: int) -> Tensor:
    """(SEEDS, n, classes) logits of a biased reader of the chosen representations, each from other folds."""
    x = with_constant(torch.cat([features[name] for name in chosen], 1))
    return _readers(x, y, classes, weight, seed)


def biased_reader(x: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Tensor:
    """(n, C) held-out log probabilities of a biased reader, averaged over ways to cut the rows; x as of `with_constant`."""
    return _readers(x, y, classes, class_balanced(y), seed).softmax(2).mean(0).clamp(min=1e-30).log()


def _readers(x: Tensor, y: Tensor, classes: int, weight: Tensor, seed: int) -> Tensor:
    """(SEEDS, n, classes) logits of biased readers, with the weight decay that reads held-out rows best."""
    logits = held_out_logits(x, y, classes, SIMPLE, weight=weight, seed=seed)
    decay = SIMPLE[_least_loss(logits, y, weight)]
    return torch.stack([biased_logits(x, y, classes, decay=decay, weight=weight, seed=seed + k) for k in range(SEEDS)])


def _weights(y: Tensor, opinions: list[Tensor], classes: int) -> Tensor:
    """The mean over the seeds of weights that make the class independent of each opinion (SEEDS, n)."""
    codes = torch.stack(opinions, 2)  # (SEEDS, n, K)
    return torch.stack([independence_weights(y, code, classes) for code in codes]).mean(0)


def _least_loss(logits: Tensor, y: Tensor, weight: Tensor) -> int:
    """Which of several readers has the lowest weighted loss on held-out rows."""
    loss = [float((weight * F.cross_entropy(z, y, reduction="none").double()).mean()) for z in logits]
    return loss.index(min(loss))


def _value(e: Explanation) -> float:
    return e.errors.value if e.errors.value == e.errors.value else 0.0


def _filled(block: Tensor, here: Tensor) -> Tensor:
    """Features of all rows; an unreadable one has the mean of the others."""
    full = block.mean(0).expand(len(here), -1).clone()
    full[here] = block
    return full
