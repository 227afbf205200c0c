r"""Slices: coherent parts of each class that a biased probe gets right or wrong, found without any bias label.

.. math::
    r_{is} \propto \pi_s\, \mathcal N\big(z_i;\, \mu_s,\, \mathrm{diag}(\sigma_s^2)\big)
           \prod_k q_{sk}^{\gamma p_{ik}}, \qquad
    \text{conflicting} \iff q_{s y} < \tfrac12

======  ============  ==========================================================================================
z       features      leading principal components of the rows' features
p       opinion       the probe's probabilities of the classes, each row judged by a probe that was not fitted on it
r       membership    how much row i belongs to slice s of its class; a row is put into the slice with the largest
q       opinion_of    what the probe says of the rows of a slice
gamma   weight        how much the probe's opinion counts beside the features
======  ============  ==========================================================================================

One mixture per class, fitted by expectation-maximisation. A biased probe lives on the shortcut, so the rows of a class that it
takes for another class are the ones that lack it: such a slice is called pseudo-conflicting, the others pseudo-aligned. Where the
probe is simply weak, conflicting slices hold hard rows: whether a nuisance explains them must be asked separately
(measure explained_errors).

A row's score is the log odds that it belongs to a conflicting slice plus the probe's margin against its class: higher means more
surely conflicting. Undefined for classes with too few rows to divide: they are one slice.

Source: Eyuboglu et al., "Domino: discovering systematic errors with cross-modal embeddings", ICLR 2022 (the mixture and gamma =
10); Yenamandra, Ramesh, Prabhu, Hoffman, "FACTS: first amplify correlations and then slice to discover bias", ICCV 2023 (a probe
that is made to live on the shortcut, one mixture per class).
Differs: the probe is linear and cross-fitted; components start from what the probe says instead of from a confusion matrix of
random clusters; variances are pulled towards the class's own, as if each component had seen `PRIOR` more rows; the number of
aligned slices is chosen by BIC.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.stats.softmax import principal_axes

WEIGHT = 10.0  # gamma
AXES = 16  # principal components
LEAST = 5  # rows of a slice
PRIOR = 5.0  # rows that the class's own variances count for
MOST_ALIGNED = 3  # aligned slices of a class
STEPS = 100  # of expectation-maximisation


@dataclass(frozen=True, slots=True)
class Mixture:
    """A fitted mixture of one class."""

    membership: Tensor  # (n, S), rows sum to 1
    opinion: Tensor  # (S, C) q
    likelihood: float  # log likelihood, summed over rows
    parameters: int

    @property
    def bic(self) -> float:
        return self.parameters * math.log(len(self.membership)) - 2 * self.likelihood


@dataclass(frozen=True, slots=True)
class Slicing:
    """The slice of every row. Slices are numbered through all classes: aligned ones of a class first, the larger first."""

    slice: Tensor  # (n,) number of the row's slice
    score: Tensor  # (n,) higher: more surely conflicting
    seems: Tensor  # (n,) the class that the row seems to be: its own in an aligned slice
    typical: Tensor  # (n,) membership of the row in its slice
    of_class: tuple[int, ...]  # class of each slice
    conflicting: tuple[bool, ...]
    said: tuple[int, ...]  # what the probe says most of the rows of each slice


def slices(
    features: Tensor, logits: Tensor, y: Tensor, *, weight: float = WEIGHT, axes: int = AXES, least: int = LEAST, seed: int = 0
) -> Slicing:
    """Slices of rows (n, D) of classes y, by a probe's held-out logits (n, C).

    >>> x = torch.cat([torch.randn(60, 4), torch.randn(20, 4) + 5])
    >>> y, said = torch.zeros(80).long(), torch.cat([torch.zeros(60), torch.ones(20)]).long()
    >>> found = slices(x, 4 * F.one_hot(said, 2).double(), y)
    >>> [int((found.slice == s).sum()) for s, c in enumerate(found.conflicting) if c]
    [20]
    """
    y = torch.as_tensor(y).long()
    logits = torch.as_tensor(logits).double()
    if not len(features) == len(logits) == len(y):
        raise UserError(f"slices: {len(features)} rows of features, {len(logits)} of logits and {len(y)} labels: must be as many")
    if weight <= 0 or axes < 1 or least < 2:
        raise UserError("slices: weight must be above 0, axes at least 1 and least at least 2")
    logits = logits / temperature(logits, y)
    opinion, z = logits.softmax(1), leading_axes(features, axes)
    log_p = logits.log_softmax(1)
    own = log_p.gather(1, y[:, None]).squeeze(1)
    others = log_p.scatter(1, y[:, None], -math.inf)
    margin = others.amax(1) - own
    number, typical, score = torch.zeros_like(y), torch.ones(len(y), dtype=torch.float64), margin.clone()
    of_class: list[int] = []
    conflicting: list[bool] = []
    said: list[int] = []
    for c in torch.unique(y).tolist():
        rows = (y == c).nonzero().flatten()
        found = of_one_class(z[rows], opinion[rows], c, weight=weight, least=least, seed=seed)
        against = found.opinion[:, c] < 0.5
        best = found.membership.argmax(1)
        size = best.bincount(minlength=len(against))
        order = sorted((s for s in range(len(against)) if size[s]), key=lambda s: (bool(against[s]), -int(size[s])))
        place = torch.full((len(against),), -1)
        place[order] = torch.arange(len(order)) + len(of_class)
        number[rows], typical[rows] = place[best], found.membership.gather(1, best[:, None]).squeeze(1)
        if bool(against.any()):
            inside = found.membership[:, against].sum(1).clamp(1e-6, 1 - 1e-6)
            score[rows] += (inside / (1 - inside)).log()
        of_class += [c] * len(order)
        conflicting += [bool(against[s]) for s in order]
        elsewhere = found.opinion.clone()
        elsewhere[against, c] = 0
        said += [int(elsewhere[s].argmax()) if against[s] else c for s in order]
    in_conflict = torch.tensor(conflicting)[number]
    seems = torch.where(in_conflict, others.argmax(1), y)
    return Slicing(number, score, seems, typical, tuple(of_class), tuple(conflicting), tuple(said))


def of_one_class(z: Tensor, opinion: Tensor, c: int, *, weight: float = WEIGHT, least: int = LEAST, seed: int = 0) -> Mixture:
    """The mixture of one class: one component for each wrong class that the probe says often, and the number of others by BIC."""
    said = opinion.argmax(1)
    start = torch.zeros_like(said)
    wrong = said != c
    counts = said[wrong].bincount(minlength=opinion.shape[1])
    often = (counts >= least).nonzero().flatten().tolist()
    for k, other in enumerate(often):
        start[said == other] = k + 1
    rest = wrong & (counts[said] < least)
    if int(rest.sum()) >= least:
        start[rest] = len(often) + 1
    best = fit_mixture(z, opinion, start, weight=weight, least=least)
    aligned = (start == 0).nonzero().flatten()
    for parts in range(2, MOST_ALIGNED + 1):
        if len(aligned) < parts * 10 * least:
            break
        inner = _clusters(z[aligned], parts, stream(seed, "slices", c, parts))
        finer = start.clone()
        finer[aligned] = torch.where(inner == 0, 0, int(start.max()) + inner)
        candidate = fit_mixture(z, opinion, finer, weight=weight, least=least)
        if candidate.bic >= best.bic:
            break
        best = candidate
    return best


def fit_mixture(
    z: Tensor, opinion: Tensor, start: Tensor, *, weight: float = WEIGHT, least: int = LEAST, steps: int = STEPS
) -> Mixture:
    """Expectation-maximisation from first components (n,); a component that loses its rows is dropped."""
    z, opinion = z.double(), opinion.double()
    membership = F.one_hot(start).double()
    whole = z.var(0, unbiased=False).clamp(min=1e-9)
    before = -math.inf
    for _ in range(steps):
        mass = membership.sum(0)
        keep = mass >= min(least, len(z)) / 2
        membership, mass = membership[:, keep] / membership[:, keep].sum(1, keepdim=True).clamp(min=1e-300), mass[keep]
        mass = membership.sum(0)
        mean = membership.T @ z / mass[:, None]
        spread = (membership.T @ z.square() - mass[:, None] * mean.square()).clamp(min=0)
        variance = (spread + PRIOR * whole) / (mass[:, None] + PRIOR)
        q = (membership.T @ opinion + 1 / opinion.shape[1]) / (mass[:, None] + 1)
        gauss = -0.5 * ((z[:, None] - mean).square() / variance + (2 * math.pi * variance).log()).sum(2)
        joint = (mass / len(z)).log() + gauss + weight * opinion @ q.log().T
        total = joint.logsumexp(1, keepdim=True)
        membership, likelihood = (joint - total).exp(), float(total.sum())
        if likelihood - before < 1e-6 * abs(likelihood) and bool(keep.all()):
            break
        before = likelihood
    free = len(q) * (2 * z.shape[1] + opinion.shape[1] - 1) + len(q) - 1
    return Mixture(membership, q, likelihood, free)


def temperature(logits: Tensor, y: Tensor) -> float:
    r"""The number by which held-out logits must be divided to be probabilities: a strongly penalised probe is too modest.

    .. math::  T = \arg\min_T -\sum_i \log \mathrm{softmax}(l_i / T)_{y_i}

    >>> round(temperature(torch.tensor([[0.0, 1.0]] * 10), torch.tensor([1] * 9 + [0])), 3)  # log 9 = 2.197 = 1 / T
    0.455
    """
    low, high = math.log(1e-3), math.log(1e3)
    for _ in range(60):  # the derivative by log T rises through 0
        middle = (low + high) / 2
        scaled = logits * math.exp(-middle)
        slope = (scaled.gather(1, y[:, None]).squeeze(1) - (scaled.softmax(1) * scaled).sum(1)).mean()
        low, high = (low, middle) if float(slope) > 0 else (middle, high)
    return math.exp((low + high) / 2)


def leading_axes(features: Tensor, axes: int = AXES) -> Tensor:
    """(n, at most `axes`) principal components of the rows, the largest variance first."""
    centred = features.float() - features.float().mean(0)
    values, vectors = principal_axes(centred)
    return (centred @ vectors[:, values.argsort(descending=True)[:axes]]).double()


def _clusters(z: Tensor, parts: int, generator: torch.Generator, rounds: int = 20) -> Tensor:
    """Lloyd's clusters (n,) of standardised rows, from starts that are far apart."""
    z = (z - z.mean(0)) / z.std(0).clamp(min=1e-9)
    centres = z[torch.randint(0, len(z), (1,), generator=generator)]
    for _ in range(parts - 1):
        centres = torch.cat([centres, z[torch.cdist(z, centres).amin(1).argmax()][None]])
    for _ in range(rounds):
        code = torch.cdist(z, centres).argmin(1)
        counts = code.bincount(minlength=parts).clamp(min=1)
        centres = torch.zeros_like(centres).index_add_(0, code, z) / counts[:, None]
    return code


FUNCTIONS = (slices, fit_mixture)
RANGE = (-math.inf, math.inf)
HIGHER = "the row is more surely one that contradicts the shortcut"
