"""Slices of the classes that nobody labelled, what to collect, and probable label errors."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unskew.records.sample import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """How many rows like those of a slice to collect, and the accuracy to expect on such rows then."""

    rows: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A coherent part of one class."""

    name: str  # of its class, and its number there
    of_class: str
    kind: str  # aligned or conflicting: what a biased probe makes of it
    seems: str  # the class that the biased probe says of most of its rows
    n: int
    share: float  # of the sampled rows of its class
    error: float  # of a plain linear probe, on rows that it was not fitted on
    low: float  # 95 % interval
    high: float
    explained_by: str = ""  # the representation that tells its rows from the rest of the class best
    phrase: str = ""  # the same in words
    explained: float = math.nan  # how well: area under the curve, 0.5 not at all
    pictures: list[str] = field(default_factory=list)  # of its most typical rows
    rows: list[Shown] = field(default_factory=list)  # that these are of
    collect: Collect | None = None

    def json(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        return {"class": content.pop("of_class"), **content}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "Slice":
        rest = {k: v for k, v in found.items() if k not in ("class", "collect", "explained", "rows")}
        rows = [Shown(**one) for one in found.get("rows", [])]
        explained = math.nan if found["explained"] is None else found["explained"]
        collect = Collect(**found["collect"]) if found["collect"] else None
        return cls(of_class=found["class"], collect=collect, explained=explained, rows=rows, **rest)

    @property
    def sentence(self) -> str:
        """What it is, in words."""
        if self.kind == "aligned":
            return f"{self.n} rows of {self.of_class} that a biased probe gets right"
        why = (
            f"; {self.phrase} explains it (area {self.explained:.2f})"
            if self.explained_by
            else "; no probe explains it: they may be hard"
        )
        return f"{self.n} rows of {self.of_class} that a biased probe takes for other classes, most often {self.seems}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A row whose label is probably wrong."""

    index: int
    label: str
    likely: str  # the label it seems to have
    confidence: float  # probability of its own label
    conflicting: bool  # in a pseudo-conflicting slice: it may lack the shortcut instead
    path: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """Slices, what to collect and probable label errors of a sample of rows; `reason` says why there are none."""

    rows: int = 0  # of the sample
    of: int = 0  # audited rows
    features: str = ""  # that slices were found in
    probe: str = ""  # whose errors were used, in words
    slices: list[Slice] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)  # the surest first
    doubtful: int = 0  # rows that `doubts` is the beginning of
    exponent: float = math.nan  # of the learning curve on conflicting rows
    seconds: float = math.nan  # that it took
    reason: str = ""

    @property
    def conflicting(self) -> list[Slice]:
        return [s for s in self.slices if s.kind == "conflicting"]

    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return content | {"slices": [s.json() for s in self.slices], "doubts": [dataclasses.asdict(d) for d in self.doubts]}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "Slices":
        numbers = {k: math.nan if found[k] is None else found[k] for k in ("exponent", "seconds")}
        lists = {"slices": [Slice.of_json(s) for s in found["slices"]], "doubts": [Doubt(**d) for d in found["doubts"]]}
        return cls(**{**found, **numbers, **lists})

    @property
    def sentence(self) -> str:
        """In a line."""
        if self.reason:
            return f"no slices: {self.reason}"
        found = self.conflicting
        if not found:
            return f"no slice of the {self.rows} rows looked at contradicts the biased probe"
        rows = sum(s.n for s in found)
        where = "1 slice" if len(found) == 1 else f"{len(found)} slices"
        return f"{rows} of {self.rows} rows, in {where}, contradict what a biased probe says"
