"""What a bench found."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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

    def __repr__(self) -> str:
        return f"BenchReport({self.suite}, {self.scale}: {self.done} of {self.runs} runs)"
