"""Shards of pictures, tar or Parquet, on this machine or in a bucket: indexed once into the manifest, then read where they lie.

The manifest of a source of shards has a Parquet part per shard: a shard that is new, or differs in size, time or tag, is indexed again,
the others are not. Its split comes from a column `split`, or from the name of the shard or its folder (`train-00001.tar`).
"""

import hashlib
import io
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.files import replacing
from unskew.core.tables import read_parquet
from unskew.data.dataset import SPLITS, DataSet
from unskew.data.manifest import RACY, VERSION, Facts, Look, place_of
from unskew.data.readers import columns as _columns
from unskew.data.readers import parquet, tar
from unskew.data.readers.files import check_names
from unskew.data.readers.images import Labels, as_built, stored_set
from unskew.data.readers.listing import EXTENSIONS
from unskew.data.readers.stores import Item, item_of, opened, protocol_of, read_ranges
from unskew.data.reading import DataConfig
from unskew.data.texts import Content, Texts

ENDINGS = (".tar", ".parquet")
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
THREADS = 4  # shards that are indexed at the same time
TAR_BLOCK = 500  # rows of a tar shard that are read together
_SPLIT = re.compile(r"(train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?)(?![a-z])", re.IGNORECASE)
_OWN = "column "  # before the names of a shard's own columns in the manifest


class Members(Texts):
    """Pictures inside shards: texts are `SHARD/NAME`; contents are read from the shards, those of a batch together."""

    def __init__(
        self, names: Texts, shards: tuple[str, ...], shard: NDArray[np.int32], place: NDArray[np.int64],
        size: NDArray[np.int64], group: NDArray[np.int32], first: NDArray[np.int64],
    ) -> None:  # fmt: skip
        super().__init__(names.raw, names.starts, names.before)
        self.shards, self.shard = shards, shard  # addresses, and which of them a row lies in
        self.place, self.size = place, size  # of a tar: the bytes; of a Parquet file: the row
        self.group, self.first = group, first  # of a Parquet file: the row group, and its first row

    def contents(self, rows: Sequence[int]) -> Sequence[Content]:
        kinds = {row: self.shards[self.shard[row]].lower().endswith(".tar") for row in rows}
        packed = [row for row in rows if kinds[row]]
        found: dict[int, IO[bytes]] = {}
        if packed:
            addresses = [self.shards[self.shard[row]] for row in packed]
            places, sizes = ([int(values[row]) for row in packed] for values in (self.place, self.size))
            found |= dict(zip(packed, map(io.BytesIO, read_ranges(addresses, places, sizes)), strict=True))
        groups: dict[tuple[int, int], list[int]] = {}
        for row in rows:
            if not kinds[row]:
                groups.setdefault((int(self.shard[row]), int(self.group[row])), []).append(row)
        for (shard, group), some in groups.items():
            places = [int(self.place[row]) for row in some]
            found |= zip(some, parquet.contents(self.shards[shard], group, int(self.first[some[0]]), places), strict=True)
        return [found[row] for row in rows]


def shards_in(root: Path) -> list[Path]:
    """The shards of a folder: directly in it, or in folders that hold nothing else (`data`, `train`, ...). None: it is no such folder."""

    def within(folder: Path) -> list[Path]:
        names = (*ENDINGS, *COMPRESSED)
        files = (p for p in folder.iterdir() if p.name.lower().endswith(names) and not p.name.startswith(("metadata.", ".")))
        return sorted(p for p in files if p.is_file())

    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    inner = [within(folder) for folder in folders]
    pictures = any(p.suffix.lower() in EXTENSIONS for folder in folders for p in folder.iterdir())
    if folders and (pictures or not all(inner)):
        return []
    return sorted([*within(root), *(path for some in inner for path in some)])


def from_shards(root: Path, paths: Sequence[Path], cfg: DataConfig) -> DataSet:
    """The rows of shards on this machine; `root` is what the user named."""
    folder = root if root.is_dir() else root.parent
    items = [item_of(str(path)) for path in paths]
    return shard_set(str(root), os.path.join(folder, ""), items, as_built(folder, cfg))


def shard_set(source: str, before: str, items: Sequence[Item], cfg: DataConfig) -> DataSet:
    """The rows of these shards; `before` is what their addresses have in common."""
    packed = next((item.address for item in items if item.address.lower().endswith(COMPRESSED)), None)
    if packed is not None:
        raise UserError(f"{packed} is compressed; pictures in it cannot be found without unpacking it all: gunzip it")
    if cfg.frames:
        raise UserError(f"{source}: data.frames={cfg.frames}: clips are not read from shards; unpack them into class folders")
    parts = _indexed(source, items)
    counts = [len(part) for part in parts]
    if not sum(counts):
        raise UserError(f"{source}: the shards have no rows")
    names = [item.address.removeprefix(before) for item in items]
    index = pl.concat(parts, how="diagonal_relaxed")
    del parts
    shard = np.repeat(np.arange(len(items), dtype=np.int32), counts)
    texts = Texts.of(f"{names[s]}/{member}" for s, member in zip(shard.tolist(), index["member"], strict=True))
    frame = index.select(pl.col(n).alias(n.removeprefix(_OWN)) for n in index.columns if n.startswith(_OWN))
    if not frame.width:
        raise UserError(
            f"{source}: the shards have pictures but no columns; a tar needs .cls or .json members, a table a label column"
        )
    labels = _labels(frame, names, shard, cfg, source)
    check_names(labels.classes, source)
    stored = Members(
        Texts.of(texts, before=before), tuple(item.address for item in items), shard, index["place"].to_numpy(),
        index["size"].to_numpy(), index["group"].to_numpy(), index["first"].to_numpy(),
    )  # fmt: skip
    name = Path(source.rstrip("/")).name or source
    blocks = _blocks(shard, index["group"].to_numpy(), items)
    return stored_set(name, source, stored, texts, _facts(index), labels, cfg, columns=frame, blocks=blocks)


def _labels(frame: pl.DataFrame, names: Sequence[str], shard: NDArray[np.int32], cfg: DataConfig, where: str) -> Labels:
    y, classes = _columns.labels(frame, cfg, where)
    bias, values = _columns.biases(frame, cfg.bias, where)
    split, splits = _columns.splits(frame, cfg, where)
    if not cfg.split and "split" not in frame.columns:
        codes = [split_of(name) for name in names]
        known = [code for code in codes if code is not None]
        if known and len(known) < len(codes):
            raise UserError(
                f"{where}: the name of {names[codes.index(None)]!r} has no split, unlike its neighbours; rename it, train-..."
            )
        split = torch.tensor(known)[torch.from_numpy(shard).long()] if known else split
        splits = SPLITS
    return Labels(
        y=y, classes=classes, split=split, splits=splits, bias=bias, bias_names=tuple(cfg.bias), bias_values=values
    )  # fmt: skip


def split_of(name: str) -> int | None:
    """The code of the split that a shard's name, or the folder it lies in, begins with.

    >>> split_of("train-00000-of-00005.parquet"), split_of("data/validation_3.tar"), split_of("test/0001.tar"), split_of("trainee.tar")
    (0, 1, 2, None)
    """
    for part in reversed(name.split("/")):
        found = _SPLIT.match(part)
        if found:
            return {"t": 0, "v": 1, "d": 1}[found[1][0].lower()] if not found[1].lower().startswith("test") else 2
    return None


def _blocks(shard: NDArray[np.int32], group: NDArray[np.int32], items: Sequence[Item]) -> Tensor:
    """(N,) numbers of the rows that are read together: a row group, or some hundred neighbours in a tar."""
    starts = np.searchsorted(shard, np.arange(len(items)))
    inside = (np.arange(len(shard)) - starts[shard]) // TAR_BLOCK
    tars = np.array([item.address.lower().endswith(".tar") for item in items])
    part = np.where(tars[shard], inside, group)
    new = np.ones(len(shard), dtype=bool)
    new[1:] = (shard[1:] != shard[:-1]) | (part[1:] != part[:-1])
    return torch.from_numpy(np.cumsum(new) - 1)


def _facts(index: pl.DataFrame) -> Facts:
    reasons = index.select(pl.col("reason")).with_row_index().filter(pl.col("reason") != "")
    return Facts(
        np.frombuffer(b"".join(index["hash"].to_list()), dtype=np.uint8).reshape(-1, 32),
        index["width"].to_numpy(), index["height"].to_numpy(), index["turned"].to_numpy(), dict(reasons.iter_rows()),
    )  # fmt: skip


def _indexed(source: str, items: Sequence[Item]) -> list[pl.DataFrame]:
    """The index of every shard, from the manifest or from the shard itself."""
    home = place_of(source if protocol_of(source) else os.path.abspath(source))
    kept = [home / f"{hashlib.sha256(os.fsencode(item.address)).hexdigest()[:32]}.parquet" for item in items]
    parts = [_recalled(path, item) for path, item in zip(kept, items, strict=True)]
    todo = [k for k, part in enumerate(parts) if part is None]
    if todo:
        with progress.bar("indexing shards", sum(items[k].size for k in todo)) as advance, ThreadPoolExecutor(THREADS) as pool:

            def one(k: int) -> pl.DataFrame:
                return _index(items[k], kept[k], advance)

            waiting = [pool.submit(one, k) for k in todo]
            try:
                for k, done in zip(todo, waiting, strict=True):
                    parts[k] = done.result()
            except BaseException:
                for later in waiting:
                    later.cancel()
                raise
    for stale in set(home.glob("*.parquet")) - set(kept) if home.is_dir() else ():
        stale.unlink(missing_ok=True)
    return [part for part in parts if part is not None]


def _recalled(path: Path, item: Item) -> pl.DataFrame | None:
    """The index of a shard as it was, if that has not changed."""
    if not path.is_file():
        return None
    try:
        frame, about = read_parquet(path)
    except (UserError, OSError):  # damaged, or just replaced
        return None
    same = (about.get("version"), about.get("shard")) == (VERSION, _stamp(item))
    return frame if same and item.mtime < int(about.get("written", 0)) - RACY else None


def _stamp(item: Item) -> str:
    return json.dumps([item.address, item.size, item.mtime, item.tag])


def _index(item: Item, kept: Path, advance: Callable[[int], None]) -> pl.DataFrame:
    started = time.time_ns()
    with opened(item.address) as file:
        index = _of_tar(file, item.address) if item.address.lower().endswith(".tar") else _of_parquet(file, item.address)
    with suppress(OSError), replacing(kept) as part:  # it saves time only
        about = {"version": VERSION, "shard": _stamp(item), "written": str(started)}
        index.write_parquet(part, metadata=about)
    advance(item.size)
    return index


def _of_tar(file: IO[bytes], where: str) -> pl.DataFrame:
    samples = list(tar.samples(file, where))
    fixed = _fixed(
        [s.member for s in samples], [s.place for s in samples], [s.size for s in samples], [s.look for s in samples], 0, 0
    )
    try:
        own = pl.DataFrame([s.columns for s in samples], infer_schema_length=None) if samples else pl.DataFrame()
    except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
        text = str(error).splitlines()[0][:100]
        raise UserError(f"{where}: a column of its .json members has values of different kinds ({text})") from None
    return _together(fixed, own)


def _of_parquet(file: IO[bytes], where: str) -> pl.DataFrame:
    parts = []
    for group, first, looks, own in parquet.rows(file, where):
        places = list(range(first, first + len(looks)))
        fixed = _fixed(
            [name for name, _, _ in looks], places, [n for _, n, _ in looks], [look for _, _, look in looks], group, first
        )
        parts.append(_together(fixed, own))
    return pl.concat(parts, how="vertical_relaxed") if parts else _fixed([], [], [], [], 0, 0)


def _together(fixed: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    return fixed.hstack([series.alias(f"{_OWN}{series.name}") for series in own.get_columns()])


def _fixed(names: list[str], places: list[int], sizes: list[int], looks: list[Look], group: int, first: int) -> pl.DataFrame:
    kinds = {
        "member": pl.String, "place": pl.Int64, "size": pl.Int64, "hash": pl.Binary, "width": pl.Int32, "height": pl.Int32,
        "turned": pl.Boolean, "reason": pl.String,
    }  # fmt: skip
    values = {"member": names, "place": places, "size": sizes} | {
        name: [getattr(look, field) for look in looks]
        for name, field in (
            ("hash", "digest"),
            ("width", "width"),
            ("height", "height"),
            ("turned", "turned"),
            ("reason", "reason"),
        )
    }
    frame = pl.DataFrame(values, schema=kinds)
    return frame.with_columns(pl.lit(group, pl.Int32).alias("group"), pl.lit(first, pl.Int64).alias("first"))
