"""What `dependency` found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unskew.core import plots
from unskew.records.groups import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """REPAIR's beta: what a model loses when rows that feed a shortcut are left out, compared with as many random rows."""

    source: str
    phi: str
    model: str
    method: str
    split: str
    seed: int
    beta: float
    rates: tuple[float, ...]
    random: tuple[float, ...]  # accuracy at each keep rate
    repaired: tuple[float, ...]
    temporal: Mapping[str, Mapping[str, Estimate]] | None  # of clips, by kind and keep rate
    command: str

    def json(self) -> dict[str, Any]:
        """The content of dependency.json, and what the command prints with --json."""
        same = ("source", "phi", "model", "method", "split", "seed", "beta", "rates", "random", "repaired")
        table = {name: getattr(self, name) for name in same}
        if self.temporal is not None:
            table["temporal"] = {kind: {at: e.json() for at, e in by.items()} for kind, by in self.temporal.items()}
        return {**table, "command": self.command}

    def plot(self) -> Any:
        """An Altair chart: accuracy against the share of the rows that is kept."""
        kinds = (("rows that feed the shortcut are left out", self.repaired), ("random rows are left out", self.random))
        rows = [{"x": x, "y": y, "series": name} for name, values in kinds for x, y in zip(self.rates, values, strict=True)]
        return plots.lines(rows, "share of the rows that is kept", "accuracy", columns=1)

    def __repr__(self) -> str:
        return f"Dependency(beta {self.beta:.3f} for {self.phi})"
