"""What an audit found."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core import notebook, plots
from unskew.records.sample import Shown
from unskew.records.slices import Slices
from unskew.records.table import Table

HARDLY = 0.8  # of its accuracy elsewhere: a simple model that keeps this much where something misleads hardly goes by it


def hardly_followed(followed: float | None, elsewhere: float | None) -> bool:
    """Whether a simple model is nearly as often right where something points to another class as elsewhere; False if not tried.

    >>> hardly_followed(0.86, 0.94), hardly_followed(0.6, 0.94), hardly_followed(None, None)
    (True, False, False)
    """
    return followed is not None and elsewhere is not None and followed >= HARDLY * elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One representation: how much of the label can be read from it."""

    name: str
    bias: float
    low: float
    high: float
    chance: float
    chance_high: float
    verdict: str  # clean, trace, readable, question or shortcut; parts/findings.py says what they mean
    content: bool
    sentence: str
    per_class: dict[str, float]
    features: int
    solved: float  # share of the rows whose class it predicts
    risk: float
    entropy: float
    n: int
    note: str
    label: str = ""  # the name in plain words
    phrase: str = ""  # the same within a sentence
    foreign: bool = False  # whether it can never be part of the subject
    explains: float | None = None  # of a simple model's errors: area under the curve, 0.5 explains none; None: not tried
    followed: float | None = (
        None  # accuracy of a simple model where this points to another class; None: not tried, or too few rows
    )
    elsewhere: float | None = None  # its accuracy on the other rows
    seen: float | None = (
        None  # share of the label that a pretrained network sees, where that is next to nothing and surely less than this
    )
    contradicting: int | None = None  # rows whose class is not the one that its reader says
    same_as: str = ""  # the finding above that already tells what this one tells
    adds: float | None = None  # share of the label beyond what that finding tells
    left: float | None = None  # share that can be read once that finding is balanced away


def _finding(found: Mapping[str, Any]) -> Finding:
    """A finding read back; versions up to 0.2 graded how much can be read, whether or not it may be content."""
    former = {"weak": "question", "strong": "question", "shortcut": "question"} if "label" not in found else {}
    return Finding(**{**found, "verdict": former.get(found["verdict"], found["verdict"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetLeakage:
    """How well a bias column can be guessed from the labels."""

    dataset: float
    low: float
    high: float
    chance: float
    n: int
    attacker: str = "network"  # or table: counts, in closed form
    protocol: str = "paper"  # code: folded about one half
    fit_on: str = "judged"  # train: fitted on the train split, judged on the test split


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFinding:
    """One bias column: association with the label, and leakage, or the reason why one cannot be measured."""

    name: str
    missing: int
    values: list[str]
    association: dict[str, float] | None = None
    association_reason: str = ""
    leakage: DatasetLeakage | None = None
    leakage_reason: str = ""

    def json(self) -> dict[str, Any]:
        return {k: v for k, v in dataclasses.asdict(self).items() if v not in (None, "")}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What was not measured: rare classes, representations that do not apply, unreadable rows."""

    classes: list[str]
    representations: dict[str, str]
    unreadable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """Sets of near-duplicate images, in numbers."""

    sets: int
    rows: int  # in these sets
    disagreeing: int  # sets whose rows differ in their label
    crossing: int  # sets with rows in more than one of the splits that the source gives

    @property
    def sentence(self) -> str:
        """In words; empty if there are none."""
        if not self.sets:
            return ""
        parts = [f"{self.rows} rows in {self.sets} {'sets' if self.sets > 1 else 'set'} of near-duplicate images"]
        parts += [f"{self.disagreeing} with labels that disagree"] if self.disagreeing else []
        parts += [f"{self.crossing} with rows in more than one of the given splits"] if self.crossing else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassGallery:
    """Thumbnails of one class: the rows a shortcut predicts best, and those it misleads most."""

    name: str
    most: list[str]
    least: list[str]
    most_rows: list[Shown] = field(default_factory=list)  # of the thumbnails, in their order; audits up to 0.2 have none
    least_rows: list[Shown] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        return {"class": content.pop("name"), **content}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "ClassGallery":
        rows = {key: [Shown(**one) for one in found.get(key, [])] for key in ("most_rows", "least_rows")}
        return cls(name=found["class"], most=found["most"], least=found["least"], **rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Thumbnails for the leading finding; `reason` says why there are none."""

    name: str
    phrase: str = ""
    reason: str = ""
    classes: list[ClassGallery] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        shown = [c.json() for c in self.classes]
        return {"name": self.name, "phrase": self.phrase, "reason": self.reason, "classes": shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A suggested next command, and why."""

    why: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found, ranked. `scores` is a frame with one row per sample; `page` is the path of the HTML page."""

    verdict: str  # in a sentence or two; of the first finding
    rows: int
    findings: list[Finding]  # shortcuts first, then questions, then what may be read, each from the clearest on
    columns: list[ColumnFinding]
    left_out: LeftOut
    gallery: Gallery
    next: list[Step]
    seed: int
    command: str
    data: Mapping[str, Any]  # the data set's description of itself
    identity: Mapping[str, Any]
    table: Table  # scores.parquet: by sample id, how each representation judges the row
    page: Path
    duplicates: Duplicates | None = None  # None: not looked for, as rows are not images or too many
    trial: Mapping[str, Any] | None = None  # what a trial of balancing gained and lost; None: nothing could be tried
    questions: list[str] = field(default_factory=list)  # shortcut or signal? With the answer's option
    overlaps: str = ""  # which findings are one thing, in words
    expected: list[str] = field(default_factory=list)  # representations that the user expects to show the class
    slices: Slices | None = None  # None: not looked for
    leaks: Mapping[str, Any] | None = None  # what names, folders and order of files tell; None: there are no files
    position: Mapping[str, Any] | None = None  # where in the picture the class can be read; None: rows are no pictures

    def json(self) -> dict[str, Any]:
        """The content of audit.json, and what the command prints with --json."""
        return {
            "identity": dict(self.identity),
            "data": dict(self.data),
            "rows": self.rows,
            "left_out": dataclasses.asdict(self.left_out),
            "representations": [dataclasses.asdict(finding) for finding in self.findings],
            "columns": [column.json() for column in self.columns],
            "duplicates": None if self.duplicates is None else dataclasses.asdict(self.duplicates),
            "trial": None if self.trial is None else dict(self.trial),
            "slices": None if self.slices is None else self.slices.json(),
            "gallery": self.gallery.json(),
            "next": [dataclasses.asdict(step) for step in self.next],
            "command": self.command,
            "seed": self.seed,
            "verdict": self.verdict,
            "questions": self.questions,
            "overlaps": self.overlaps,
            "expected": self.expected,
            "leaks": None if self.leaks is None else dict(self.leaks),
            "position": None if self.position is None else dict(self.position),
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any], table: Table, page: Path) -> "Audit":
        """An audit read back from its file."""
        gallery = dict(found["gallery"])
        shown = [ClassGallery.of_json(c) for c in gallery.pop("classes")]
        columns = [{**c, "leakage": DatasetLeakage(**c["leakage"]) if "leakage" in c else None} for c in found["columns"]]
        return cls(
            verdict=found["verdict"], rows=found["rows"], seed=found["seed"], command=found["command"], data=found["data"],
            identity=found["identity"], table=table, page=page, left_out=LeftOut(**found["left_out"]),
            findings=[_finding(r) for r in found["representations"]], columns=[ColumnFinding(**c) for c in columns],
            gallery=Gallery(**gallery, classes=shown), next=[Step(**s) for s in found["next"]],
            duplicates=Duplicates(**found["duplicates"]) if found.get("duplicates") else None,  # audits of version 0.2 have none
            trial=found.get("trial"), questions=found.get("questions", []), overlaps=found.get("overlaps", ""),
            expected=found.get("expected", []), slices=Slices.of_json(found["slices"]) if found.get("slices") else None,
            leaks=found.get("leaks"), position=found.get("position"),
        )  # fmt: skip

    @property
    def scores(self) -> pl.DataFrame:
        """One row per sample: label, path, and a column `score NAME` per representation, higher where the row contradicts it."""
        return self.table.frame

    def plot(self) -> Any:
        """An Altair chart: what of the label can be read from every representation, with its interval."""
        rows = [
            {
                "name": f.label or f.name,
                "value": max(f.bias, 0.0),
                "low": max(f.low, 0.0),
                "high": max(f.high, 0.0),
                "kind": f.verdict,
            }
            for f in self.findings
        ]
        return plots.bars(rows, "share of the label that can be read", kind="kind", colours=plots.COLOURS)

    def _repr_html_(self) -> str:
        rows = [
            (
                f.label or f.name,
                notebook.percent(f.bias),
                f"{notebook.percent(f.low)} to {notebook.percent(f.high)}",
                notebook.percent(max(f.chance, 0.0)),
                f.verdict,
            )
            for f in self.findings
        ]
        shown = [(address, c.name) for c in self.gallery.classes[:4] for address in c.most[:3]]
        head = ("representation", "readable", "95 % interval", "chance", "verdict")
        return str(notebook.paragraph(self.verdict) + notebook.table(head, rows) + notebook.pictures(shown))

    def __repr__(self) -> str:
        return f"Audit({len(self.findings)} representations of {self.rows} rows: {self.verdict!r})"
