"""Slices of a sample of rows: a biased probe, the mixture, which nuisance explains each slice, what to collect, label errors.

The biased probe reads the nuisances that explain a simple model's errors, as in parts.opinion; if none does, the part of the picture
that stands out in them (parts.picture_part); without one it is that model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.rng import stream
from unskew.measure.explained_errors import LEAST, explained_errors
from unskew.measure.label_errors import LabelErrors, label_errors
from unskew.measure.learning_curve import exponent
from unskew.measure.slices import Slicing, leading_axes, slices
from unskew.parts.opinion import NEARLY, biased_reader
from unskew.stats.readers import FOLDS, class_balanced, held_out_logits, spread_folds, with_constant
from unskew.stats.softmax import fit_softmax

PART = "part"  # name of a part of the picture among the nuisances
EXPLAINS = 0.7  # area under the curve from which a nuisance counts as the reason for a slice
AXES = 64  # principal components that the plain probe reads
DECAYS = (0.03, 0.3, 3.0)  # of the plain probe
SHARES = (0.25, 0.5, 1.0)  # of the conflicting rows, for the learning curve
DRAWS = 2  # of each share below 1
LEAST_CURVE = 20  # conflicting rows below which there is no learning curve


@dataclass(frozen=True, slots=True)
class Nuisance:
    """A simple representation of the sampled rows, with what its held-out reader reveals of each row's class."""

    name: str
    phrase: str
    features: Tensor  # (n, D)
    gain: Tensor  # (n,) nats


@dataclass(frozen=True, slots=True)
class Sliced:
    """Everything that was found about the sampled rows."""

    slicing: Slicing
    probe: tuple[str, ...]  # nuisances that the biased probe reads; empty: the simple model itself
    read: tuple[str, ...]  # the same in words
    wrong: Tensor  # (n,) errors of the plain probe, held out, or of the model under judgement
    explained: tuple[tuple[str, str, float], ...]  # per slice: (name, phrase, area); an empty name if none explains it
    errors: LabelErrors
    exponent: float  # of the learning curve on conflicting rows; NaN without one


def slice_rows(
    features: Tensor,
    y: Tensor,
    classes: int,
    reference: Tensor,
    nuisances: Sequence[Nuisance],
    *,
    part: Callable[[Tensor], tuple[str, Tensor] | None] | None = None,
    own: bool = False,
    seed: int = 0,
) -> Sliced:
    """Slices of rows with standardised features (n, D); `reference` has a simple model's held-out logits.

    With `own` they are those of a model under judgement, and the errors of slices are its errors. `part` is asked where no nuisance
    explains the errors: from the logits it finds a part of the picture, and gives words for it and its features (n, D), or None.
    """
    bad = reference.argmax(1) != y
    chosen = _explaining(nuisances, bad, y, seed)
    opinion = reference
    if not chosen and part is not None and (found := part(reference)) is not None:
        opinion = biased_reader(with_constant(found[1]), y, classes, seed=seed)
        gain = opinion.gather(1, y[:, None]).squeeze(1)
        chosen = [Nuisance(PART, found[0], found[1], gain)]
        nuisances = [*nuisances, *chosen]
    elif chosen:
        opinion = biased_reader(with_constant(torch.cat([n.features for n in chosen], 1)), y, classes, seed=seed)
    slicing = slices(features, opinion, y, seed=seed)
    axes = with_constant(leading_axes(features, AXES))
    plain, decay = _plain(axes, y, classes, seed)
    against = torch.tensor(slicing.conflicting)[slicing.slice]
    return Sliced(
        slicing=slicing,
        probe=tuple(n.name for n in chosen),
        read=tuple(n.phrase for n in chosen),
        wrong=bad if own else plain.argmax(1) != y,
        explained=tuple(_reason(nuisances, slicing, y, s, seed) for s in range(len(slicing.of_class))),
        errors=label_errors(plain.double().softmax(1), y),
        exponent=_curve(axes, y, classes, against, decay, seed),
    )


def _explaining(nuisances: Sequence[Nuisance], bad: Tensor, y: Tensor, seed: int) -> list[Nuisance]:
    """The nuisances that explain the errors, and those that explain nearly as much."""
    found = [(explained_errors(n.gain, bad, y, bootstrap=2, seed=seed).value, n) for n in nuisances]
    best = max((value for value, _ in found if not math.isnan(value)), default=0.0)
    return [n for value, n in found if value >= max(EXPLAINS, best - NEARLY)]


def _reason(nuisances: Sequence[Nuisance], slicing: Slicing, y: Tensor, s: int, seed: int) -> tuple[str, str, float]:
    """The nuisance whose gain tells a conflicting slice best from the aligned rows of its class, if one does."""
    inside = slicing.slice == s
    if not slicing.conflicting[s]:
        return "", "", math.nan
    other = (y == slicing.of_class[s]) & ~torch.tensor(slicing.conflicting)[slicing.slice]
    if not bool(other.any()):
        return "", "", math.nan
    best = ("", "", math.nan)
    for n in nuisances:
        area = _area(n.gain[inside], n.gain[other])
        if area >= EXPLAINS and not area <= best[2]:
            best = (n.name, n.phrase, area)
    return best


def _area(low: Tensor, high: Tensor) -> float:
    """The share of pairs in which the first has the smaller value; ties count half."""
    ordered = high.sort().values
    upper, lower = torch.searchsorted(ordered, low, right=True), torch.searchsorted(ordered, low)
    return float((len(high) - upper + (upper - lower) / 2).double().mean()) / len(high)


def _plain(x: Tensor, y: Tensor, classes: int, seed: int) -> tuple[Tensor, float]:
    """Held-out logits of a plain linear probe, and its weight decay: the one that reads held-out rows best."""
    logits = held_out_logits(x, y, classes, DECAYS, weight=class_balanced(y), seed=seed)
    loss = [float(F.cross_entropy(z, y)) for z in logits]
    best = loss.index(min(loss))
    return logits[best], DECAYS[best]


def _curve(x: Tensor, y: Tensor, classes: int, against: Tensor, decay: float, seed: int) -> float:
    """The exponent with which a plain probe's error on conflicting rows falls as it is fitted on more of them."""
    rows = against.nonzero().flatten()
    if len(rows) < max(LEAST_CURVE, LEAST):
        return math.nan
    fold = spread_folds(y, FOLDS, seed)
    balance, columns, shares = class_balanced(y).to(x.dtype), [], []
    for share in SHARES:
        for draw in range(DRAWS if share < 1 else 1):
            used = torch.ones(len(y), dtype=x.dtype)
            order = torch.randperm(len(rows), generator=stream(seed, "curve", share, draw))
            used[rows[order[round(share * len(rows)) :]]] = 0
            columns += [used * balance * (fold != k) for k in range(FOLDS)]
            shares.append(share)
    weight = torch.stack(columns, 1)
    weight = weight / weight.sum(0).clamp(min=1e-30)
    w = fit_softmax(x, y[:, None].expand(-1, weight.shape[1]).contiguous(), weight, (decay,), classes, tolerance=1e-4)[0]
    errors = []
    for problem in w.view(len(shares), FOLDS, x.shape[1], classes):
        guess = torch.stack([x[rows] @ problem[k] for k in range(FOLDS)]).argmax(2)  # (FOLDS, m)
        held_out = guess.gather(0, fold[rows][None])[0]
        errors.append(float((held_out != y[rows]).double().mean()))
    return exponent([share * len(rows) for share in shares], errors)
