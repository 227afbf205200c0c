"""Linear readers judged on rows they were not fitted on: logits of every row, by the reader of the other folds."""

from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.matrix import Matrix, Rows
from unskew.core.rng import stream
from unskew.stats import streamed
from unskew.stats.softmax import fit_softmax

FOLDS = 5


def spread_folds(y: Tensor, folds: int, seed: int) -> Tensor:
    """A fold for every row, each class spread evenly over the folds."""
    order = torch.randperm(len(y), generator=stream(seed, "folds"))
    order = order[y[order].argsort(stable=True)]
    fold = torch.empty_like(y)
    fold[order] = torch.arange(len(y)) % folds
    return fold


def with_constant(features: Tensor) -> Tensor:
    """Standardised columns after a column of ones; a constant one becomes 0."""
    centred = features.float() - features.double().mean(0).float()
    return torch.cat([centred.new_ones(len(centred), 1), centred / centred.std(0).clamp(min=1e-6)], 1)


def class_balanced(y: Tensor) -> Tensor:
    """Weights of mean 1 that give every class the same total."""
    counts = y.bincount().clamp(min=1).double()
    raw = 1 / counts[y]
    return raw / raw.mean()


def held_out_logits(
    x: Tensor, y: Tensor, classes: int, decays: Sequence[float], *, weight: Tensor, folds: int = FOLDS, seed: int = 0
) -> Tensor:
    """(decays, n, classes) logits of every row by the reader that held it out; x as of `with_constant`."""
    fold = spread_folds(y, min(folds, len(y)), seed)
    number = int(fold.max()) + 1
    outside = (fold[:, None] != torch.arange(number)).to(x.dtype) * weight[:, None].to(x.dtype)
    outside = outside / outside.sum(0).clamp(min=1e-30)
    w = fit_softmax(x, y[:, None].expand(-1, number).contiguous(), outside, decays, classes, tolerance=1e-5)
    logits = x.new_empty(len(decays), len(x), classes)
    for k in range(number):
        rows = fold == k
        logits[:, rows] = torch.einsum("bf,efc->ebc", x[rows], w[:, k])
    return logits


def held_out_opinion(features: Rows, y: Tensor, classes: int, decay: float, seed: int = 0) -> Tensor:
    """(n,) the class that a linear reader of the features says of each row, held out; every class has the same say.

    Above 200,000 rows it is fitted on so many of them, drawn class by class (stats.streamed).
    """
    if not isinstance(features, Matrix) and len(features) <= streamed.FITTED:
        held = with_constant(features.reshape(len(features), -1))
        return held_out_logits(held, y, classes, (decay,), weight=class_balanced(y), seed=seed)[0].argmax(1)
    x = streamed.Standard(features, streamed.moments(features))
    picked, weight = streamed.sample_of(y, class_balanced(y), 10 * FOLDS, seed, streamed.fitted(x.width))
    fold = spread_folds(y[picked], FOLDS, seed)
    outside = (fold[:, None] != torch.arange(FOLDS)).float() * weight[:, None].float()
    w = fit_softmax(x[picked], y[picked], outside, (decay,), classes, tolerance=1e-5)[0]  # (folds, D, C)
    code = torch.empty_like(y)
    for part, logits in streamed.held_out(x, w, streamed.folds_of_all(len(y), FOLDS, picked, fold)):
        code[part] = logits.argmax(1)
    return code


def biased_logits(
    x: Tensor,
    y: Tensor,
    classes: int,
    *,
    decay: float,
    weight: Tensor | None = None,
    seed: int = 0,
    q: float = 0.7,
    rounds: int = 3,
) -> Tensor:
    r"""Held-out logits of a reader that commits to what most rows show: generalised cross-entropy by repeated weighting.

    .. math::  \omega_i \leftarrow \beta_i\, p_{y_i}^q, \qquad p = \text{held-out probability of the round before}

    The gradient of GCE is p^q times that of cross-entropy, so rows that contradict the majority lose their say. beta are the given
    weights, 1 / n of the row's class without any.
    """
    balance = class_balanced(y) if weight is None else weight
    logits = held_out_logits(x, y, classes, (decay,), weight=balance, seed=seed)[0]
    for _ in range(rounds - 1):
        sure = logits.double().softmax(1).gather(1, y[:, None]).squeeze(1)
        logits = held_out_logits(x, y, classes, (decay,), weight=balance * sure.clamp(min=1e-3) ** q, seed=seed)[0]
    return logits
