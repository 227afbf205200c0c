"""A sample of rows in which every class keeps its share, and no class is lost."""

import torch
from torch import Tensor

from unskew.core.rng import stream

LEAST = 50  # rows of a class that a sample keeps if the class has them


def stratified(y: Tensor, most: int, *, seed: int = 0, least: int = LEAST) -> Tensor:
    """Positions, in order, of at most about `most` rows: each class in its share, but at least `least` rows of it.

    >>> picked = stratified(torch.tensor([0] * 900 + [1] * 100), 100, least=20)
    >>> torch.tensor([0] * 900 + [1] * 100)[picked].bincount().tolist()
    [90, 20]
    """
    if len(y) <= most:
        return torch.arange(len(y))
    parts = []
    for c in torch.unique(y).tolist():
        rows = (y == c).nonzero().flatten()
        wanted = min(len(rows), max(least, round(most * len(rows) / len(y))))
        parts.append(rows[torch.randperm(len(rows), generator=stream(seed, "sample", c))[:wanted]])
    return torch.cat(parts).sort().values
