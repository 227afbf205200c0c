"""What a bench found."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core import plots


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of one method on one data set, next to the published one; shares in per cent."""

    data: str
    at: str
    method: str
    figure: str
    runs: int
    mean: float | None
    spread: float | None
    published_mean: float | None
    published_spread: float | None
    difference: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """A summary of all runs in a bench folder."""

    suite: str
    title: str
    scale: str
    commands: list[str]
    version: str
    runs: int
    done: int
    machine: list[str]
    commits: list[str]
    versions: Mapping[str, str]
    seconds: float
    resumed: list[str]
    notes: list[str]
    table: list[Row]
    page: Path
    failed: list[str]

    def json(self) -> dict[str, Any]:
        """What the command prints with --json; report.json is the same without `page` and `failed`."""
        same = ("suite", "title", "scale", "commands", "runs", "done", "machine", "commits", "seconds", "resumed", "notes")
        table = {name: getattr(self, name) for name in same}
        rows = [dataclasses.asdict(row) for row in self.table]
        more = {"unskew": self.version, "versions": dict(self.versions), "table": rows}
        return {**table, **more, "page": str(self.page), "failed": self.failed}

    def plot(self, figure: str = "") -> Any:
        """An Altair chart: ours and the published mean of one figure, the first of the table if none is named."""
        figure = figure or (self.table[0].figure if self.table else "")
        rows = []
        for row in (row for row in self.table if row.figure == figure):
            name = " ".join(filter(None, (row.data, row.at, row.method)))
            for kind, mean, spread in (
                ("ours", row.mean, row.spread), ("published", row.published_mean, row.published_spread),
            ):  # fmt: skip
                if mean is not None:
                    low, high = ((mean - spread) / 100, (mean + spread) / 100) if spread else (None, None)
                    rows.append({"name": f"{name}, {kind}", "value": mean / 100, "low": low, "high": high, "kind": kind})
        return plots.bars(rows, figure, kind="kind", colours={"ours": "#4a6fa5", "published": "#9aa5b1"})

    def __repr__(self) -> str:
        return f"BenchReport({self.suite}, {self.scale}: {self.done} of {self.runs} runs)"
