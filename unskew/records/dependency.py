"""What `dependency` found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    def __repr__(self) -> str:
        return f"Dependency(beta {self.beta:.3f} for {self.phi})"
