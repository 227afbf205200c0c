"""What the user named, opened: the data set, and a column for everything that audits, repairs and runs say about its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from unskew.core import config, registry
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import read_json
from unskew.data.dataset import DataSet
from unskew.data.readers.folder import is_result
from unskew.data.reading import DataConfig
from unskew.data.sources import load
from unskew.records import Run, Table

MEMORY = 1.0  # gigabytes of images held at once; the rest is decoded as it is looked at
ALIEN = "it is neither an audit, a repair, a run nor a source"


@dataclass(frozen=True)
class Predicted:
    """A run's answers: the rows it was asked about, and its logits."""

    name: str
    index: Tensor
    logits: Tensor


@dataclass(frozen=True)
class Opened:
    """A data set and what is known of its rows."""

    data: DataSet
    title: str
    columns: pl.DataFrame  # one row per sample, in order
    runs: tuple[Predicted, ...] = ()
    results: tuple[str, ...] = ()  # what was found beside the data, in words


@dataclass(frozen=True)
class _Result:
    """One audit, repair or run on disk: whose rows it is about, and how they were read."""

    kind: str
    path: Path
    source: str
    reading: Mapping[str, Any]
    fingerprint: str


def open_place(text: str, settings: Mapping[str, Any] | None = None) -> Opened:
    """Open an audit, a repair, a run, a folder of these, or a source; `settings` are those of DataConfig."""
    path, given = Path(text).expanduser(), dict(settings or {})
    found = list(_results(path)) if path.exists() else []
    if not found:
        return _opened(_source(text, path, given), path.name or text, [])
    first = found[0]
    if not first.source:
        raise UserError(
            f"{first.path} was made from data passed from Python, which cannot be read again; explore a source on disk"
        )
    reading = config.build(DataConfig, {**first.reading, **given, "memory": MEMORY, "mode": "auto"}, "data.")
    with registry.named_by(first.path):
        data = load(first.source, reading, without_inputs=True)
    if not data.made({"fingerprint": first.fingerprint}):
        raise UserError(f"{first.source} has changed since {first.path} was made from it; make it again, or explore the source")
    return _opened(data, path.name, [one for one in found if data.made({"fingerprint": one.fingerprint})])


def _source(text: str, path: Path, given: Mapping[str, Any]) -> DataSet:
    try:
        return load(text, without_inputs=True, **{"memory": MEMORY, **given})
    except UserError as error:
        if not path.is_dir():
            raise
        inside = "an empty folder" if not any(path.iterdir()) else ALIEN
        raise UserError(f"cannot explore {text}: {inside} ({error})") from None


def _results(path: Path) -> Iterator[_Result]:
    """What unskew left at a path: one result, or the results right inside a folder, audits first."""
    one = _result(path)
    if one is not None:
        yield one
        return
    if not path.is_dir():
        return
    inside = [found for child in sorted(path.iterdir()) if (found := _result(child)) is not None]
    yield from sorted(inside, key=lambda found: ("audit", "run", "repair").index(found.kind))


def _result(path: Path) -> _Result | None:
    if path.suffix == ".parquet" and path.is_file():
        with refusing(f"{path} cannot be read as a Parquet table"):
            known = b"fingerprint" in pl.read_parquet_metadata(path).get("unskew", "").encode()
        made_by = Table.read(path).made_by if known else {}
        if not isinstance(made_by.get("identity"), dict) or "repair" not in made_by:
            return None
        return _described("repair", path, made_by.get("data"), {}, made_by.get("fingerprint"))
    if not path.is_dir() or not (is_result(path) or (path / "weights.json").is_file()):
        return None
    if (path / "audit.json").is_file():
        record = read_json(path / "audit.json", "the result of an audit")
        identity = record.get("identity")
        return _described(
            "audit", path, record.get("data"), {}, identity.get("fingerprint") if isinstance(identity, dict) else None
        )
    if not is_result(path):  # kept images in class folders, or a folder that holds a table of weights among other results
        table = path / "weights.parquet"
        made_by = Table.read(table).made_by if table.is_file() else {}
        alone = isinstance(made_by.get("identity"), dict) and made_by["identity"].get("as") == "folder"
        return _result(table) if alone else None
    record = Run(path).whole
    return _described("run", path, record["data"], record["config"]["data"], record["fingerprint"])


def _described(kind: str, path: Path, data: Any, reading: Mapping[str, Any], fingerprint: Any) -> _Result:
    if not isinstance(data, dict) or not isinstance(fingerprint, str) or not isinstance(data.get("source"), str):
        raise UserError(f"{path} is damaged or was not written by this version of unskew: it does not say what it was made from")
    there = data.get("reading", {})
    return _Result(kind, path, data["source"], reading or (there if isinstance(there, dict) else {}), fingerprint)


def _opened(data: DataSet, title: str, results: list[_Result]) -> Opened:
    columns, runs, said = [_own(data)], [], []
    several = sum(one.kind == "run" for one in results) > 1
    for one in results:
        said.append(f"{one.kind} {one.path.name}")
        if one.kind == "run":
            predicted = _predicted(one.path, data)
            if predicted is None:
                said[-1] += " (no predictions yet: unskew evaluate writes them)"
                continue
            runs.append(predicted)
            columns.append(_answers(predicted, data, f"{predicted.name} " if several else ""))
        elif one.kind == "audit":
            columns.append(_joined(Table.read(one.path / "scores.parquet"), data, ("path", "label")))
        else:
            table = Table.read(one.path)
            known = _joined(table, data, ("path", "label", "y", "split"))
            columns.append(known.rename({name: f"{one.path.stem} {name}" for name in known.columns}))
    return Opened(data, title, _beside(columns), tuple(runs), tuple(said))


def _beside(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """All columns side by side; one whose name is taken gets a number."""
    found: dict[str, pl.Series] = {}
    for series in (one for frame in frames for one in frame):
        name, number = series.name, 2
        while name in found:
            name, number = f"{series.name} ({number})", number + 1
        found[name] = series.alias(name)
    return pl.DataFrame(found)


def _own(data: DataSet) -> pl.DataFrame:
    """Label, split, bias columns, and the source's other columns."""
    columns: dict[str, pl.Series] = {}

    def coded(name: str, code: Tensor, values: tuple[str, ...]) -> None:
        if not values:
            return
        words = pl.Series(name, values, dtype=pl.String)
        known = pl.Series(code.numpy())
        columns[name] = words.gather(known.clip(0)).set(known < 0, None).alias(name)

    if data.multi_label:
        for k, name in enumerate(data.classes):
            coded(name, data.y[:, k].long(), ("no", "yes"))
    else:
        coded("label", data.y.long(), data.classes)
    coded("split", data.split.long(), data.splits)
    for k, name in enumerate(data.bias_names):
        coded(name, data.bias[:, k].long(), data.bias_values[k])
    if data.paths:
        columns["path"] = pl.Series("path", data.file_names)
    if data.unreadable:
        broken = np.zeros(len(data), dtype=bool)
        broken[[k for k, _ in data.unreadable]] = True
        columns["unreadable"] = pl.Series("unreadable", broken)
    for series in data.columns:
        if series.name not in columns and not series.dtype.is_nested() and len(data.columns) == len(data):
            columns[series.name] = series
    return pl.DataFrame(columns)


def _joined(table: Table, data: DataSet, without: tuple[str, ...]) -> pl.DataFrame:
    """The columns of a table for every row of the data set; rows that it lacks have none."""
    kept = [n for n in table.frame.columns if n not in ("index", *without) and not table.frame[n].dtype.is_nested()]
    every = pl.DataFrame({"index": np.arange(len(data))})
    there = table.frame.select(pl.col("index").cast(pl.Int64), *kept)
    return every.join(there, on="index", how="left", maintain_order="left").drop("index")


def _predicted(path: Path, data: DataSet) -> Predicted | None:
    """What a run says of the rows it was asked about, from the tables in its folder."""
    index, logits = [], []
    for file in sorted((path / "predictions").glob("*.parquet")):
        table = Table.read(file)
        if data.made(table.made_by) and len(table) and int(table.index.max()) < len(data):
            answers = table.column("logits").float()
            if answers.shape[1:] == (len(data.classes),):
                index.append(table.index)
                logits.append(answers)
    if not index:
        return None
    rows, first = np.unique(torch.cat(index).numpy(), return_index=True)
    return Predicted(path.name, torch.from_numpy(rows), torch.cat(logits)[torch.from_numpy(first)])


def _answers(predicted: Predicted, data: DataSet, before: str) -> pl.DataFrame:
    index, chance = predicted.index.numpy(), predicted.logits.softmax(1)
    if data.multi_label:
        return pl.DataFrame()
    said = chance.argmax(1)
    table = pl.DataFrame(
        {
            "index": index,
            f"{before}prediction": [data.classes[c] for c in said.tolist()],
            f"{before}correct": (said == data.y[predicted.index]).numpy(),
            f"{before}confidence": chance.max(1).values.numpy(),
        }
    )
    return _joined(Table(table), data, ())
