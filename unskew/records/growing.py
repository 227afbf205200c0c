"""A table that is written while its rows come, and one that is read again from its files a part at a time.

Few rows stay in memory and are saved as any other table. More are written as Parquet parts beside the table's place as they come; when
all are there the parts become the table: a folder of them above `LARGE` rows, else one file.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.core.files import part_path, replacing, sweep
from unskew.records import table as tables
from unskew.records.table import Table, shards

NUMBERS = 2**24  # in the rows that are held: 134 MB in double precision
GROUP = 512**2  # rows of a group in one file, as polars has them; fewer where rows are wide


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that is too large to hold: it is read when it is asked for, whole (`frame`, `column`) or in parts."""

    path: Path
    made_by: dict[str, Any]
    rows: int
    width: int  # numbers in a row

    def __len__(self) -> int:
        return self.rows

    @property
    def frame(self) -> pl.DataFrame:
        return Table.read(self.path).frame

    @property
    def index(self) -> Tensor:
        return Table.read(self.path, ["index"]).index

    def column(self, name: str) -> Tensor:
        return Table.read(self.path, ["index", name]).column(name)

    def parts(self, *columns: str) -> Iterator[Table]:
        """These columns and the sample ids, as many rows at a time as may be held."""
        lazy = pl.scan_parquet(shards(self.path) or self.path).select("index", *columns)
        each = max(1, NUMBERS // self.width)
        for start in range(0, self.rows, each):
            yield Table(lazy.slice(start, each).collect(), self.made_by)

    def to_polars(self) -> pl.DataFrame:
        return self.frame

    def __getitem__(self, columns: Any) -> Any:
        return self.frame[columns]


def opened(path: Path) -> Table | TableFile:
    """The table at a path: in memory, unless it holds more numbers than may be held."""
    files = shards(path) or [path]
    if sum(file.stat().st_size for file in files) <= NUMBERS:  # a number takes about four bytes when it is packed
        return Table.read(path)
    first = Table.read(files[0], ["index"])  # raises if it is damaged
    lazy = pl.scan_parquet(files)
    rows, width = int(lazy.select(pl.len()).collect().item()), _width(lazy.head(1).collect())
    return TableFile(path, first.made_by, rows, width) if rows * width > NUMBERS else Table.read(path)


@dataclass
class Growing:
    """The rows of a table on their way to its place. Use it in a `with`: what is not saved is removed."""

    path: Path
    made_by: dict[str, Any]
    rows: int = 0
    _held: list[pl.DataFrame] = field(default_factory=list)
    _numbers: int = 0
    _width: int = 1
    _written: list[Path] = field(default_factory=list)

    def __enter__(self) -> "Growing":
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return part_path(self.path.absolute().with_name(f"{self.path.name}.rows"))

    def add(self, frame: pl.DataFrame) -> None:
        """Rows with sample ids above all that were added before."""
        if not len(frame):
            self._held = self._held or [frame]  # its columns
            return
        self._width = _width(frame)
        self._held.append(frame)
        self.rows += len(frame)
        self._numbers += len(frame) * self._width
        each = min(tables.SHARD, max(1, NUMBERS // self._width))
        while self._numbers >= each * self._width and (self._written or self._numbers > NUMBERS or self.rows > tables.LARGE):
            whole = pl.concat(self._held)
            self._write(whole.head(each))
            self._held = [whole.slice(each)]
            self._numbers = len(self._held[0]) * self._width

    def _write(self, frame: pl.DataFrame) -> None:
        if not self._written:
            sweep(self._folder.parent / f"{self.path.name}.rows")
            self._folder.mkdir(parents=True)
        place = self._folder / f"part-{len(self._written):05d}.parquet"
        Table(frame.rechunk(), self.made_by).write(place)
        self._written.append(place)

    def column(self, name: str) -> Tensor:
        """A column of all rows so far, in memory."""
        parts = [Table.read(place, ["index", name]).column(name) for place in self._written]
        held = [Table(pl.concat(self._held)).column(name)] if self._numbers or not parts else []
        return torch.cat([*parts, *held])

    @property
    def table(self) -> Table | TableFile:
        """The table as it is, or as it will be read from its place once it is saved."""
        if self._written:
            return TableFile(self.path, self.made_by, self.rows, self._width)
        return Table(pl.concat(self._held, rechunk=True), self.made_by)

    def save(self) -> None:
        """Put the table in its place."""
        if not self._written:
            found = self.table
            assert isinstance(found, Table)
            found.save(self.path)
            return
        if self._numbers:
            self._write(pl.concat(self._held))
        if self.rows > tables.LARGE:
            self.path.unlink(missing_ok=True) if self.path.is_file() else None
            shutil.rmtree(self.path) if self.path.is_dir() else None
            os.replace(self._folder, self.path)
            return
        if self.path.is_dir() and Table.is_at(self.path):  # a larger result was here
            shutil.rmtree(self.path)
        about, group = {"unskew": json.dumps(self.made_by)}, min(GROUP, max(1, NUMBERS // self._width))
        with replacing(self.path) as part:  # polars copies them group by group
            pl.scan_parquet(self._written).sink_parquet(part, metadata=about, row_group_size=group)


def _width(frame: pl.DataFrame) -> int:
    """Numbers in a row of a frame."""
    return sum(len(frame[0, name]) if frame[name].dtype.is_nested() and len(frame) else 1 for name in frame.columns)
