"""Accuracy by (class, bias) group, its named averages, and figures with their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.core import notebook, plots

SMALL_GROUP = 30  # a group with fewer rows is marked wherever it is shown
AVERAGES = ("plain", "class_balanced", "group_mean", "worst_group", "aligned", "conflicting", "unbiased")  # of Groups
HALF_SUM = "aligned_and_conflicting"  # (aligned + conflicting) / 2, whatever the number of rows in each: PGD's CelebA


@dataclass(frozen=True, slots=True)
class Cell:
    """One (class, bias) group: rows, correct rows, and the interval of its accuracy."""

    y: int  # class code
    bias: tuple[int, ...]  # code of each bias column
    n: int
    correct: float  # correct rows; may be fractional in a multi-label task
    low: float  # 95 % Wilson interval of the accuracy
    high: float
    aligned: bool | None  # whether the bias points to this class in training; None if neither, or without a bias column

    @property
    def accuracy(self) -> float:
        return self.correct / self.n if self.n else math.nan

    @property
    def small(self) -> bool:
        return self.n < SMALL_GROUP


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, its interval, the rows behind it and, where it is undefined, the reason."""

    value: float
    low: float
    high: float
    n: int
    reason: str = ""

    def json(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Groups:
    """Accuracy by (class, bias) group, and its named averages."""

    cells: tuple[Cell, ...]
    classes: tuple[str, ...]
    bias_names: tuple[str, ...]
    bias_values: tuple[tuple[str, ...], ...]
    plain: Estimate  # over rows
    class_balanced: Estimate  # mean over classes
    group_mean: Estimate  # mean over groups that have rows
    worst_group: Estimate  # lowest group of at least SMALL_GROUP rows
    aligned: Estimate  # rows whose bias points to their class
    conflicting: Estimate  # rows whose bias points elsewhere
    unbiased: Estimate  # mean over groups of more than 10 rows (ReBias)
    without_bias: int = 0  # rows left out of the groups because a bias value is missing

    def matrix(self, what: str = "accuracy") -> Tensor:
        """(classes, values) of the one bias column: accuracy (NaN where a group has no rows) or n."""
        if len(self.bias_names) != 1:
            raise ValueError(f"a matrix needs exactly one bias column, got {len(self.bias_names)}")
        fill = math.nan if what == "accuracy" else 0.0
        table = torch.full((len(self.classes), len(self.bias_values[0])), fill, dtype=torch.float64)
        for cell in self.cells:
            table[cell.y, cell.bias[0]] = getattr(cell, what)
        return table

    @property
    def n(self) -> Tensor:
        return self.matrix("n").long()

    @property
    def biased(self) -> float:
        return self.aligned.value

    @property
    def worst(self) -> float:
        return self.worst_group.value

    def __repr__(self) -> str:
        shown = [f"{name} {100 * e.value:.1f} %" for name in AVERAGES if not math.isnan((e := getattr(self, name)).value)]
        return f"Groups({len(self.cells)} groups of {self.plain.n} rows: {', '.join(shown)})"

    def plot(self) -> Any:
        """An Altair chart: the averages with their intervals, then the accuracy of every group that has rows."""
        found = {name: getattr(self, name) for name in AVERAGES}
        rows = [
            {"name": name.replace("_", " "), "value": e.value, "low": e.low, "high": e.high, "kind": "average"}
            for name, e in found.items()
            if not math.isnan(e.value)
        ]
        for c in self.cells:
            bias = _named(self.bias_values, c.bias)
            name = self.classes[c.y] + (f", {bias}" if bias else "")
            rows.append({"name": name, "value": c.accuracy, "kind": "aligned" if c.aligned else "group"})
        colours = {"average": "#9aa5b1", "aligned": "#3f978a", "group": "#4a6fa5"}
        return plots.bars([r for r in rows if not math.isnan(r["value"])], "accuracy", kind="kind", colours=colours)

    def _repr_html_(self) -> str:
        estimates = [(name, getattr(self, name)) for name in AVERAGES]
        averages = [(name, notebook.percent(e.value), _span(e), e.n) for name, e in estimates]
        cells = sorted(self.cells, key=lambda c: c.accuracy)[:20]
        groups = [
            (
                self.classes[c.y],
                _named(self.bias_values, c.bias) or "",
                c.n,
                notebook.percent(c.accuracy),
                "yes" if c.aligned else "",
            )
            for c in cells
        ]
        lowest = notebook.table(("class", "bias", "n", "accuracy", "aligned"), groups)
        return str(notebook.table(("average", "accuracy", "95 % interval", "n"), averages) + lowest)

    def json(self) -> dict[str, Any]:
        """The JSON of `unskew evaluate`: fractions of one."""
        estimates: dict[str, Estimate] = {name: getattr(self, name) for name in AVERAGES}
        return {
            **{name: e.value for name, e in estimates.items()},
            HALF_SUM: (self.aligned.value + self.conflicting.value) / 2,
            "intervals": {name: [e.low, e.high] for name, e in estimates.items()},
            "rows": {name: e.n for name, e in estimates.items()},
            "undefined": {name: e.reason for name, e in estimates.items() if e.reason},
            "bias_columns": list(self.bias_names),
            "without_bias": self.without_bias,
            "groups": [
                {
                    "y": self.classes[c.y],
                    "bias": _named(self.bias_values, c.bias),
                    "n": c.n,
                    "accuracy": c.accuracy,
                    "low": c.low,
                    "high": c.high,
                    "aligned": c.aligned,
                    "small": c.small,
                }
                for c in self.cells
            ],
        }


def _span(e: Estimate) -> str:
    return e.reason or f"{notebook.percent(e.low)} to {notebook.percent(e.high)}"


def _named(values: Sequence[Sequence[str]], codes: Sequence[int]) -> str | list[str] | None:
    names = [v[c] for v, c in zip(values, codes, strict=True)]
    return None if not names else names[0] if len(names) == 1 else names
