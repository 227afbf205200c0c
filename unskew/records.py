"""The few records that travel between stages. Frozen, checked once when made, next to no behaviour."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.errors import UserError
from unskew.files import replacing

SMALL_GROUP = 30  # a group with fewer rows is marked wherever it is shown
AVERAGES = ("plain", "class_balanced", "group_mean", "worst_group", "aligned", "conflicting", "unbiased")  # of Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one training step sees. A column the method did not ask for is None."""

    index: Tensor  # (B,) sample id: row in the full data set, the same in every split and epoch
    x: Tensor  # (B, D) vectors, (B, C, H, W) images or (B, T, C, H, W) clips
    y: Tensor  # (B,) class, or (B, L) zeros and ones of a multi-label task
    bias: Tensor | None = None  # (B, A) codes of the bias attributes, -1 where missing; only if `sees` says so
    group: Tensor | None = None  # (B,) code of (y, bias), see maths.groups.group_id; same rule
    weight: Tensor | None = None  # (B,) from a repair table, mean 1 over the training rows

    def need(self, column: str) -> Tensor:
        value: Tensor | None = getattr(self, column)
        if value is None:
            raise LookupError(f"batch has no {column!r}: declare sees = frozenset({{'bias'}})")
        return value

    def mean(self, per_sample: Tensor) -> Tensor:
        """Of a loss over the batch, with the weights of a repair where there are any."""
        return (per_sample if self.weight is None else self.weight * per_sample).mean()

    def columns(self) -> dict[str, Tensor]:
        """The columns that are there, by name."""
        pairs = ((name, getattr(self, name)) for name in ("index", "x", "y", "bias", "group", "weight"))
        return {name: value for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a method may know about its training set before the first step."""

    class_counts: Tensor  # (C,) rows per class, or (L,) positives per label
    rows: int = 0  # rows of the training split
    size: int  # rows of the full data set; per-sample state is sized by it and addressed by Batch.index
    shape: tuple[int, ...]  # of one input
    multi_label: bool = False
    group_counts: Tensor | None = None  # (G,), under the same rule as Batch.group
    bias_sizes: tuple[int, ...] = ()  # how many values each bias attribute has; empty unless `sees` says so
    mean: tuple[float, ...] = ()  # what inputs were normalised with, per channel; empty: nothing
    std: tuple[float, ...] = ()

    @property
    def num_classes(self) -> int:
        return int(self.class_counts.numel())

    @property
    def label_weight(self) -> Tensor:
        """(L,) rows without a label over rows with it: the class weight of Wang et al. for several labels per row."""
        positives = self.class_counts.double().clamp(min=1)
        return ((self.rows - positives).clamp(min=1) / positives).float()


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns for samples: a bias score, a weight and a prediction are the same kind of thing."""

    frame: pl.DataFrame  # has the column `index`: sample ids, each once
    made_by: dict[str, Any] = field(default_factory=dict)  # name, settings, fingerprint of the source

    def __post_init__(self) -> None:
        if "index" not in self.frame.columns:
            raise UserError(f"a table needs the column 'index', got {', '.join(self.frame.columns)}")
        if not self.frame["index"].dtype.is_integer():
            raise UserError(f"the column 'index' must hold whole numbers, this one holds {self.frame['index'].dtype}")
        if self.frame["index"].n_unique() != len(self.frame):
            raise UserError("a table has each sample id once, this one repeats some")

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def index(self) -> Tensor:
        return torch.from_numpy(self.frame["index"].to_numpy().astype("int64", copy=True))

    def column(self, name: str) -> Tensor:
        """A numeric column as a tensor; a list column becomes a matrix."""
        if name not in self.frame.columns:
            raise UserError(f"the table has no column {name!r}; it has {', '.join(self.frame.columns)}")
        series = self.frame[name]
        if series.dtype == pl.List or isinstance(series.dtype, (pl.List, pl.Array)):
            width = 0 if series.is_empty() else len(series[0])
            return torch.from_numpy(series.explode().to_numpy().copy()).reshape(len(series), width)
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise UserError(f"column {name!r} must hold numbers, it holds {series.dtype}")
        return torch.from_numpy(series.to_numpy().copy())

    def save(self, path: Path) -> None:
        packed = io.BytesIO()
        self.frame.write_parquet(packed, metadata={"unskew": json.dumps(self.made_by)})
        with replacing(path) as part:
            part.write_bytes(packed.getbuffer())  # a full disk is then an OSError like any other

    @classmethod
    def read(cls, path: Path) -> "Table":
        try:
            frame = pl.read_parquet(path)
            made_by = json.loads(pl.read_parquet_metadata(path).get("unskew", "{}"))
        except FileNotFoundError:
            raise UserError(f"no table {str(path)!r}") from None
        except (pl.exceptions.PolarsError, OSError, json.JSONDecodeError) as error:
            raise UserError(f"{str(path)!r} is not a Parquet table: {error}") from None
        return cls(frame, made_by)


@dataclass(frozen=True, slots=True)
class Cell:
    """One (class, bias) group: how many rows, how many right, and how sure that is."""

    y: int  # class code
    bias: tuple[int, ...]  # code of each bias attribute
    n: int
    correct: float  # rows right; a fraction of a row in a multi-label task
    low: float  # 95 % Wilson interval of the accuracy
    high: float
    aligned: bool | None  # does the bias point to this class in training; None if there is no bias

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
    """Accuracy by (class, bias) group. Every average of it has a name of its own."""

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
        """(classes, values of the bias) of one bias attribute: accuracy or n; NaN where a group has no rows."""
        if len(self.bias_names) != 1:
            raise ValueError(f"a matrix needs one bias attribute, there are {len(self.bias_names)}")
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

    def json(self) -> dict[str, Any]:
        """The JSON of `unskew evaluate`: fractions of one."""
        estimates: dict[str, Estimate] = {name: getattr(self, name) for name in AVERAGES}
        return {
            **{name: e.value for name, e in estimates.items()},
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


def _named(values: Sequence[Sequence[str]], codes: Sequence[int]) -> str | list[str] | None:
    names = [v[c] for v, c in zip(values, codes, strict=True)]
    return None if not names else names[0] if len(names) == 1 else names


@dataclass(frozen=True, slots=True)
class Run:
    """A folder: config.json, log.jsonl, state and model weights, predictions, metrics, report."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / "config.json").is_file():
            raise UserError(f"{str(self.path)!r} is not a run: it has no config.json; make one with unskew train")
        try:
            known = "config" in json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError):
            known = False
        if not known:
            raise UserError(f"{str(self.path)!r} is not a run: its config.json is not unskew's")

    @property
    def config(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        return loaded

    @property
    def finished(self) -> bool:
        return (self.path / "done.json").is_file()

    @property
    def outcome(self) -> dict[str, Any]:
        """What the training ended with: steps, seconds, selected step, skipped rows."""
        if not self.finished:
            raise UserError(f"{str(self.path)!r} is not finished: give its unskew train command again to go on")
        loaded: dict[str, Any] = json.loads((self.path / "done.json").read_text(encoding="utf-8"))
        return loaded

    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl, the last one for each step winning (a resumed run may repeat some)."""
        path = self.path / "log.jsonl"
        if not path.is_file():
            return []
        rows: dict[tuple[int, str], dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the last line of a killed run may be cut short
                continue
            rows[(row["step"], row["kind"])] = row
        return [rows[key] for key in sorted(rows)]
