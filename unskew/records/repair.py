"""What a repair did."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core import notebook, plots
from unskew.records.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How much of the label can be read from a representation; `reason` says why it could not be measured."""

    bias: float | None
    low: float | None
    high: float | None
    n: int
    chance: float | None = None
    reason: str = ""

    def json(self) -> dict[str, Any]:
        table = {"bias": self.bias, "low": self.low, "high": self.high, "n": self.n}
        return {**table, **({} if self.reason else {"chance": self.chance}), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Measured:
    """One representation before and after the repair."""

    name: str
    before: Reading
    after: Reading
    phrase: str = ""  # the name in a sentence

    @property
    def words(self) -> str:
        return self.phrase or self.name

    def json(self) -> dict[str, Any]:
        return {"name": self.name, "phrase": self.phrase, "before": self.before.json(), "after": self.after.json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasShares:
    """Share of every value of one bias column in each class, before and after."""

    bias: str
    columns: list[str]
    before: list[list[float]]
    after: list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Share of the classes before and after, and of the values of each bias column in them."""

    classes: list[str]
    before: list[float]
    after: list[float]
    by_bias: list[BiasShares]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair did. `table` has one row per sample and is stored at `path`; `page` is the path of the HTML page."""

    verdict: str
    kept: int
    rows: int
    unreadable: int
    noisy: int | None
    repair: str
    use: str  # how the weights are meant: loss, chance or keep
    settings: Mapping[str, Any]
    training: Mapping[str, str]  # settings of the network trained for it
    run: str  # the run whose network was used
    seed: int
    measured: list[Measured]
    figures: Mapping[str, Any]  # what else the repair found; its card says what
    data: Mapping[str, Any]
    fingerprint: str
    identity: Mapping[str, Any]
    groups: Composition
    effective: float | None  # rows that equally weighted ones would carry as much information as
    change: str  # of what can be read: less, removed, reversed, hardly less, more, or empty if it was not measured
    harms: list[str]  # what the guards found; not empty only with --force
    command: str
    advice: (
        str  # what a trial on held-out rows says of such a repair, or that none was made; empty where the user named the column
    )
    next: str  # the command that trains with the weights; empty if a trial speaks against it
    version: str
    table: Table
    path: Path
    page: Path

    def json(self) -> dict[str, Any]:
        """The content of the table's .json, and what the command prints with --json."""
        same = (
            "kept",
            "rows",
            "unreadable",
            "noisy",
            "repair",
            "use",
            "run",
            "seed",
            "fingerprint",
            "command",
            "verdict",
            "advice",
            "next",
            "effective",
            "change",
            "harms",
        )
        return {
            "bias_before": self.measured[0].before.bias,
            "bias_after": self.measured[0].after.bias,
            **{name: getattr(self, name) for name in same},
            "settings": dict(self.settings),
            "training": dict(self.training),
            "representations": [m.json() for m in self.measured],
            "figures": dict(self.figures),
            "data": dict(self.data),
            "identity": dict(self.identity),
            "unskew": self.version,
            "groups": dataclasses.asdict(self.groups),
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any], table: Table, path: Path, page: Path) -> "Repaired":
        """A repair read back from its file; fields that version 0.1 did not write are empty."""
        measured = [
            Measured(r["name"], Reading(**r["before"]), Reading(**r["after"]), r.get("phrase", ""))
            for r in found["representations"]
        ]
        groups = dict(found["groups"])
        shares = [BiasShares(**b) for b in groups.pop("by_bias")]
        same = ("verdict", "kept", "rows", "unreadable", "noisy", "repair", "settings", "training", "run", "seed", "figures")
        return cls(
            **{name: found[name] for name in (*same, "data", "fingerprint", "identity", "command")}, measured=measured,
            groups=Composition(**groups, by_bias=shares), use=found.get("use", ""),
            advice=found.get("advice", ""), next=found.get("next", ""),
            effective=found.get("effective"), change=found.get("change", ""), harms=found.get("harms", []),
            version=found["unskew"], table=table, path=path, page=page,
        )  # fmt: skip

    def plot(self) -> Any:
        """An Altair chart: what of the label can be read before and after."""
        rows = [
            {
                "name": f"{m.name}, {when}",
                "value": max(r.bias or 0.0, 0.0),
                "low": max(r.low or 0.0, 0.0),
                "high": max(r.high or 0.0, 0.0),
                "kind": when,
            }
            for m in self.measured
            for when, r in (("before", m.before), ("after", m.after))
        ]
        return plots.bars(
            rows, "share of the label that can be read", kind="kind", colours={"before": "#9aa5b1", "after": "#3f978a"}
        )

    def _repr_html_(self) -> str:
        rows = [(m.name, notebook.percent(m.before.bias), notebook.percent(m.after.bias)) for m in self.measured]
        about = notebook.facts(f"repair {self.repair}", {"rows": self.rows, "kept": self.kept, "weights are used as": self.use})
        return str(notebook.paragraph(self.verdict) + about + notebook.table(("representation", "before", "after"), rows))

    def __repr__(self) -> str:
        return f"Repaired({self.repair}: {self.kept} of {self.rows} rows kept, {str(self.path)!r})"
