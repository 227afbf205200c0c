"""A folder of Parquet parts whose rows are vectors: a list column `features` or `x`, or numbered columns f0, f1, ... (x0, feature_0).

Other columns are read as those of a table. The vectors are copied once into one file of 32-bit numbers in the cache, where a row is
read without touching the others; nothing holds all of them.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import torch

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.fetch import cache
from unskew.core.files import read_json, write_json
from unskew.core.matrix import Matrix, writing
from unskew.data.dataset import DataSet
from unskew.data.readers import columns as _columns
from unskew.data.readers.parquet import picture_column
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle
from unskew.data.stored import Stored

LISTS = ("features", "x")
_NUMBERED = re.compile(r"(f|x|feature_?)\d+")
BLOCK = 131_072  # rows read at once


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files of a folder, by name."""
    return sorted(p for p in folder.glob("*.parquet") if p.is_file() and not p.name.startswith((".", "_")))


def is_vectors(folder: Path) -> bool:
    """Whether the first Parquet file of a folder has a column of vectors, or numbered columns."""
    parts = parts_of(folder)
    if not parts or any(
        p.is_dir() and not p.name.startswith(".") for p in folder.iterdir()
    ):  # class folders, with a table beside
        return False
    with refusing(f"{parts[0]} cannot be read as a Parquet table"):
        schema = pl.read_parquet_schema(parts[0])
        return not picture_column(schema) and bool(_vector_columns(schema))  # boxes x0, x1 of pictures are no vectors


def _vector_columns(schema: dict[str, pl.DataType]) -> list[str]:
    for name in LISTS:
        kind = schema.get(name)
        if isinstance(kind, pl.List | pl.Array) and kind.inner.is_numeric():  # type: ignore[union-attr,unused-ignore]
            return [name]
    found = [name for name, kind in schema.items() if _NUMBERED.fullmatch(name) and kind.is_numeric()]
    return sorted(found, key=lambda name: int(re.sub(r"\D", "", name))) if len(found) > 1 else []


def _columns_of(part: Path) -> list[str]:
    with refusing(f"{part} cannot be read as a Parquet table; it may have been cut"):
        return _vector_columns(pl.read_parquet_schema(part))


def from_vectors(folder: Path, cfg: DataConfig) -> DataSet:
    """The rows of all parts, one part after another."""
    parts, where = parts_of(folder), str(folder)
    names = _columns_of(parts[0])
    for part in parts[1:]:
        if _columns_of(part) != names:
            raise UserError(f"{part} has other columns than {parts[0].name}; all parts need the same")
    with refusing(f"{where} cannot be read as Parquet parts"):
        frame = pl.concat([pl.scan_parquet(part).drop(names) for part in parts]).collect()
        matrix, content = _stored(parts, names)
    if not len(frame):
        raise UserError(f"{where}: the parts have no rows")
    y, classes = _columns.labels(frame, cfg, where)
    bias, values = _columns.biases(frame, cfg.bias, where)
    split, splits = _columns.splits(frame, cfg, where)
    settled = settle(y, split, cfg, where, columns=frame)
    used = {*(cfg.label or _columns.LABEL_NAMES), cfg.split, "split"}
    data = DataSet(
        name=folder.name, inputs=Stored(matrix), y=y, classes=classes, splits=splits, bias=bias, bias_names=cfg.bias,
        bias_values=values, source=where, columns=frame.select([n for n in frame.columns if n not in used]), **settled.fields(),
    )  # fmt: skip
    return data.derived(content)


def _stored(parts: Sequence[Path], names: Sequence[str]) -> tuple[Matrix, str]:
    """The vectors in one file of the cache, written once for these parts as they are now; and a hash of their numbers."""
    told = [(str(p.absolute()), p.stat().st_size, p.stat().st_mtime_ns) for p in parts]
    tag = hashlib.sha256(repr((told, list(names))).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    path = cache() / "vectors" / f"{tag}.f32"
    beside = path.with_suffix(".json")
    if not (beside.is_file() and path.is_file()):
        digest, rows, width = hashlib.sha256(), 0, len(names)
        lengths = [int(pl.scan_parquet(p).select(pl.len()).collect().item()) for p in parts]
        if len(names) == 1:
            width = next((block.shape[1] for block in _blocks(parts[0], names, min(1, lengths[0]))), 0)
        with progress.bar("reading vectors", sum(lengths)) as advance, writing(path, width) as add:
            for part, length in zip(parts, lengths, strict=True):
                for block in _blocks(part, names, length):
                    if block.shape[1] != width:
                        raise UserError(f"{part}: vectors of {block.shape[1]} numbers after others of {width}")
                    wrong = ~np.isfinite(block).all(1)
                    if wrong.any():
                        raise UserError(
                            f"{part}: NaN, infinity or nothing in {int(wrong.sum())} rows, first in {int(wrong.argmax())}"
                        )
                    digest.update(block.data)
                    add(torch.from_numpy(block))
                    rows += len(block)
                    advance(len(block))
        write_json(beside, {"rows": rows, "width": width, "content": digest.hexdigest()})
    facts = read_json(beside, "the facts of stored vectors")
    return Matrix(((path, int(facts["width"])),), int(facts["rows"])), str(facts["content"])


def _blocks(part: Path, names: Sequence[str], length: int) -> Iterator[np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    for start in range(0, length, BLOCK):
        frame = pl.scan_parquet(part).select(names).slice(start, min(BLOCK, length - start)).collect()
        if len(names) > 1:
            yield np.array(frame.cast(pl.Float32).to_numpy(), order="C")
            continue
        series = frame.to_series()
        sizes = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
        if series.null_count() or sizes.n_unique() != 1:
            raise UserError(f"{part}: column {names[0]!r} holds vectors of different lengths, or none in some row")
        yield np.array(series.explode().cast(pl.Float32).to_numpy()).reshape(
            len(series), -1
        )  # a copy: polars' own is not writable
