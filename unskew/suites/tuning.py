"""Grids: every combination of a method's settings is a run of its own, and a rule that never sees the test split chooses one."""

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

CHOOSE = ("val-loss", "val-pseudo-groups", "oracle")  # rules of training.selection that look at the validation split


class Candidate(Protocol):
    """A run that a grid may have made."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def tried(self) -> dict[str, str]: ...
    @property
    def choose(self) -> str: ...


Run = TypeVar("Run", bound=Candidate)


def spread(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table as one level of dotted names.

    >>> spread({"optim": {"lr": [0.01, 0.1]}, "k": [10]})
    {'optim.lr': [0.01, 0.1], 'k': [10]}
    """
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        flat |= spread(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def candidates(grid: Mapping[str, Any], first: bool = False) -> list[dict[str, str]]:
    """Every combination of the values, or only the first; one empty combination without a grid.

    >>> candidates({"k": [10, 100], "optim": {"lr": [0.1]}})
    [{'k': '10', 'optim.lr': '0.1'}, {'k': '100', 'optim.lr': '0.1'}]
    """
    flat = spread(grid)
    every = [dict(zip(flat, map(str, values), strict=True)) for values in itertools.product(*flat.values())]
    return every[:1] if first else every


def label(tried: Mapping[str, str]) -> str:
    """A candidate as part of a file name: `lr=0.01+k=100`.

    >>> label({"optim.lr": "0.01", "k": "100"})
    'lr=0.01+k=100'
    """
    return "+".join(f"{name.rpartition('.')[2]}={value}" for name, value in tried.items())


def chosen_runs(tasks: Iterable[Run], scores: Mapping[str, float | None]) -> tuple[list[Run], str]:
    """The runs of the candidate with the highest mean score over seeds, and the choice in words; `scores` by a run's id.

    A candidate counts once all its seeds have a score; until one does, the first is shown.
    """
    groups: dict[str, list[Run]] = {}
    for task in tasks:
        groups.setdefault(label(task.tried), []).append(task)
    if len(groups) == 1:
        return next(iter(groups.values())), ""
    means = {}
    for name, group in groups.items():
        known = [s for t in group if (s := scores.get(t.id)) is not None and not math.isnan(s)]
        if len(known) == len(group):
            means[name] = statistics.mean(known)
    best = max(means, key=lambda name: means[name], default=next(iter(groups)))
    one = groups[best][0]
    ranked = ", ".join(f"{name} {means[name]:.3g}" for name in sorted(means, key=lambda name: -means[name]))
    return groups[best], f"{one.name}: {best}, by {one.choose} among {len(means)} of {len(groups)} candidates: {ranked}"
