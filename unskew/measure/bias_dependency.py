r"""Bias dependency: what a model loses when rows that feed its shortcut are removed, compared with random rows.

.. math::  \beta = \frac{1}{|\mathcal{R}|} \sum_{r \in \mathcal{R}} \big( a_\text{random}(r) - a_\text{repaired}(r) \big),
           \qquad \mathcal{R} = \{0.25, 0.5, 0.75\}

a(r) is the accuracy after training on the share r of the rows: drawn at random within classes, or those with the largest repair
weights within classes. A rate of 1, all rows, may be asked for too, for the curve; it does not enter beta. A large beta means that
the model relies on the bias that the repair removed.

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2 (Table 1).
Differs: random subsets keep the class shares, like the repaired ones, so that class balance does not affect beta.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream


@dataclass(frozen=True, slots=True)
class BiasDependency:
    beta: float
    rates: tuple[float, ...]
    random: tuple[float, ...]  # accuracy on a random subset, by keep rate
    repaired: tuple[float, ...]  # accuracy on a repaired subset, by keep rate


def bias_dependency(
    accuracy: Callable[[Tensor], float],
    weights: Tensor,
    y: Tensor,
    *,
    rates: Sequence[float] = (0.25, 0.5, 0.75),
    seed: int = 0,
) -> BiasDependency:
    """Beta, where `accuracy` trains a model on the rows it is given and returns its accuracy."""
    return beta_of({key: accuracy(rows) for key, rows in subsets(weights, y, rates=rates, seed=seed).items()})


def subsets(
    weights: Tensor, y: Tensor, *, rates: Sequence[float] = (0.25, 0.5, 0.75), seed: int = 0
) -> dict[tuple[str, float], Tensor]:
    """The rows to train on, by kind (random, repaired) and keep rate."""
    weights, y = torch.as_tensor(weights), torch.as_tensor(y)
    if len(weights) != len(y):
        raise UserError(f"{len(weights)} weights for {len(y)} labels")
    check_rates(rates)
    if not bool(torch.isfinite(weights).all()):
        raise UserError(f"weights must be finite, but row {int((~torch.isfinite(weights)).nonzero()[0])} is not")
    chance = torch.rand(len(y), generator=stream(seed, "bias dependency"))
    scores = {"random": chance, "repaired": weights}
    return {(kind, rate): top_within_classes(score, y, rate) for kind, score in scores.items() for rate in rates}


def check_rates(rates: Sequence[float]) -> None:
    if not any(r < 1 for r in rates) or not all(0 < r <= 1 for r in rates) or len({f"{r:g}" for r in rates}) < len(rates):
        raise UserError(f"keep rates must lie between 0 and 1 and differ, and one must be below 1, got {tuple(rates)}")


def beta_of(accuracy: Mapping[tuple[str, float], float]) -> BiasDependency:
    """Beta from the accuracy of each kind (random, repaired) and keep rate.

    >>> round(beta_of({("random", 0.5): 0.9, ("repaired", 0.5): 0.7}).beta, 3)
    0.2
    """
    rates = tuple(rate for kind, rate in accuracy if kind == "random")
    random, repaired = (tuple(accuracy[kind, rate] for rate in rates) for kind in ("random", "repaired"))
    gaps = [a - b for rate, a, b in zip(rates, random, repaired, strict=True) if rate < 1]
    beta = sum(gaps) / len(gaps)
    return BiasDependency(beta, rates, random, repaired)


def top_within_classes(score: Tensor, y: Tensor, rate: float) -> Tensor:
    """The rows with the highest scores: the same share of every class, at least one row each.

    >>> top_within_classes(torch.tensor([0.1, 0.9, 0.8, 0.2]), torch.tensor([0, 0, 1, 1]), 0.5).tolist()
    [1, 2]
    """
    kept = []
    for c in torch.unique(y).tolist():
        rows = (y == c).nonzero().flatten()
        kept.append(rows[score[rows].argsort(descending=True)[: max(1, round(rate * len(rows)))]])
    return torch.cat(kept).sort().values


FUNCTIONS = (bias_dependency,)
RANGE = (-1.0, 1.0)
HIGHER = "the model relies more on the representation"
