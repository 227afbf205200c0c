"""The leading nuisance of a data set: what an audit would name first."""

from typing import TypeVar

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.features import compute
from unskew.measure.representation_bias import bias_of_labels
from unskew.parts.opinion import simple_representations

T = TypeVar("T")
ROWS = 3000  # enough to rank representations


def leading_nuisance(data: DataSet, rows: Tensor, seed: int, workers: int) -> str:
    """The simplest representation among those that read most of the class, by name; empty if none reads anything."""
    specs = simple_representations(data)
    if not specs:
        return ""
    some = rows[torch.randperm(len(rows), generator=stream(seed, "nuisance"))[:ROWS]].sort().values
    index, features = compute(data, specs, some, workers=workers)
    found = []
    for one in specs:
        try:
            e = bias_of_labels(features[one.name], data.y[index], seed=seed)
        except UserError:  # too few rows of a class to measure anything
            continue
        if e.above_chance or data.multi_label:
            found.append((e.bias, e.width, one.name))
    return simplest(found) if found else ""


def simplest(candidates: list[tuple[float, int, T]]) -> T:
    """Of (bias, number of features, thing), the thing with the fewest features among those that read nearly as much as the best.

    Three numbers that give a class away are a simpler shortcut than two hundred.

    >>> simplest([(0.9, 200, "border"), (0.85, 3, "color"), (0.1, 1, "column")])
    'color'
    """
    best = max(bias for bias, _, _ in candidates)
    return min((c for c in candidates if c[0] >= best - 0.2 * abs(best)), key=lambda c: (c[1], -c[0]))[2]
