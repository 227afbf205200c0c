"""What `auto` tried, chose and recommends."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unskew.core import notebook, plots
from unskew.records.groups import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One candidate in one rung, judged on training rows that were held out for the choice."""

    share: float  # of its steps
    score: float  # what the rule maximises
    balanced: float  # class-balanced accuracy where the opinion tells nothing
    known: float | None  # accuracy of the worst (class, bias) group; None without a bias column. Not used for the choice
    seconds: float
    training: float  # seconds of them that grow with the steps
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One candidate: its rungs, and what became of it."""

    name: str
    settings: Mapping[str, Any]
    fate: str  # winner, dropped, refused, failed, left out
    reason: str
    rungs: list[Trained] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(r.seconds for r in self.rungs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A model trained on all training rows, judged on validation rows that no choice has seen; and on the test rows."""

    name: str
    run: Path
    seconds: float
    rows: int
    score: float  # what the rule maximises
    balanced: float  # class-balanced accuracy where the opinion tells nothing
    class_balanced: float  # on the rows as they are
    known: float | None  # accuracy of the worst (class, bias) group; None without a bias column
    test: Mapping[str, Estimate] = field(default_factory=dict)  # named averages; empty without test rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """What was tried, and the model that is recommended."""

    verdict: str  # in a sentence or two
    recommended: str  # name of the method
    run: Path  # its folder
    gate: Mapping[str, Any]  # open, reason, named
    rule: str
    tried: list[Tried]  # in the order of the budget; empty if the gate is closed
    finalists: list[Finalist]  # erm first
    gain: tuple[float, float] | None  # class-balanced, where the opinion tells nothing, over erm's, and its standard error
    missing_labels: str  # what missing bias labels cost, in a sentence; empty without a bias column
    cut: list[str]  # what the budget left out, in sentences; empty: the budget changed nothing
    budget: float  # seconds
    seconds: float  # spent, over all attempts
    rows: Mapping[str, int]  # training rows in the rungs, rows held out for the choice, validation rows
    source: str
    seed: int
    command: str
    identity: Mapping[str, Any]
    page: Path
    audit: Path  # its page
    test_bias: tuple[str, ...] = ()  # bias columns that the test figures know
    commit: str = ""  # of the checkout that the package ran from

    def json(self) -> dict[str, Any]:
        """The content of auto.json, and what the command prints with --json."""
        same = (
            "verdict",
            "recommended",
            "rule",
            "gain",
            "missing_labels",
            "cut",
            "budget",
            "seconds",
            "source",
            "seed",
            "command",
        )
        finalists = [
            {**_plain(f, "run", "test"), "run": str(f.run), "test": {n: e.json() for n, e in f.test.items()}}
            for f in self.finalists
        ]
        return {
            "identity": dict(self.identity),
            **{name: getattr(self, name) for name in same},
            "run": str(self.run),
            "gate": dict(self.gate),
            "rows": dict(self.rows),
            "tried": [{**_plain(t, "rungs"), "seconds": t.seconds, "rungs": [_plain(r) for r in t.rungs]} for t in self.tried],
            "finalists": finalists,
            "audit": str(self.audit),
            "test_bias": list(self.test_bias),
            "commit": self.commit,
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any], page: Path) -> "Auto":
        """A result read back from its file."""
        tried = [
            Tried(**{k: v for k, v in t.items() if k != "seconds"} | {"rungs": [Trained(**_known(r)) for r in t["rungs"]]})
            for t in found["tried"]
        ]
        finalists = [
            Finalist(**_known(f) | {"run": Path(f["run"]), "test": {n: Estimate(**_known(e)) for n, e in f["test"].items()}})
            for f in found["finalists"]
        ]
        return cls(
            **{
                **found,
                "run": Path(found["run"]),
                "audit": Path(found["audit"]),
                "gain": None if found["gain"] is None else tuple(found["gain"]),
                "test_bias": tuple(found["test_bias"]),
                "tried": tried,
                "finalists": finalists,
                "page": page,
            }
        )

    def plot(self) -> Any:
        """An Altair chart: the last score of every candidate that was trained."""
        scored = [t for t in self.tried if t.rungs]
        rows = [{"name": t.name, "value": t.rungs[-1].score, "kind": "winner" if t.fate == "winner" else "other"} for t in scored]
        return plots.bars(rows, self.rule, kind="kind", colours={"winner": "#3f978a", "other": "#9aa5b1"})

    def _repr_html_(self) -> str:
        rows = [
            (t.name, t.fate, notebook.percent(t.rungs[-1].score) if t.rungs else "–", f"{t.seconds:.0f} s", t.reason)
            for t in self.tried
        ]
        head = ("candidate", "", self.rule, "cost", "reason")
        return str(notebook.paragraph(self.verdict) + notebook.table(head, rows))

    def __repr__(self) -> str:
        return f"Auto(recommends {self.recommended}: {self.verdict!r})"


def _known(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table read back: JSON has no NaN, so an undefined figure is null there."""
    return {
        k: math.nan if v is None and k in ("score", "balanced", "class_balanced", "value", "low", "high") else v
        for k, v in table.items()
    }


def _plain(record: Any, *without: str) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record) if f.name not in without}
