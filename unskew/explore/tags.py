"""The one table that the explorer writes: tags, rows to drop, and new labels. Every change is applied to what is on disk, under a lock.

For a tag T the table holds `T` (yes or no, as marked by hand or as spread), `T certainty` and `T by hand`. `weight` is 0 for rows to
drop, `relabel` a new class: so the table is also what `unskew train --weights` takes.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.core.errors import UserError, suggest
from unskew.core.workplace import alone
from unskew.data.dataset import DataSet
from unskew.data.sources import relabelled
from unskew.data.tags import MARKS, check_tag
from unskew.records import Table

YES, NO = "yes", "no"
HAND, SURE = "by hand", "certainty"


class ReadOnly(UserError):
    """Writing was not allowed when the explorer was started."""


class Tags:
    """The tags of one data set. Threads and processes may change them at the same time; each change sees those before it."""

    def __init__(self, path: Path, data: DataSet, write: bool) -> None:
        self.path, self.data, self.write = path, data, write
        self._mutex = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._frame = self._empty()
        self.frame()  # a table that is damaged or of other rows is refused at the start

    def _empty(self) -> pl.DataFrame:
        n = len(self.data)
        return pl.DataFrame({"index": np.arange(n), "weight": np.ones(n)}).with_columns(pl.lit(None, pl.String).alias("relabel"))

    def frame(self) -> pl.DataFrame:
        """What is on disk now, read again only if it has changed."""
        with self._mutex:
            return self._fresh()

    def _fresh(self) -> pl.DataFrame:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            if self._stamp is not None:
                self._stamp, self._frame = None, self._empty()
            return self._frame
        stamp = (there.st_mtime_ns, there.st_size, there.st_ino)
        if stamp != self._stamp:
            table = Table.read(self.path)
            if table.made_by.get("name") != "explore" or not self.data.made(table.made_by) or len(table) != len(self.data):
                raise UserError(
                    f"{self.path} is not the table of tags of {self.data.name}, or the data has changed; move it away"
                )
            self._frame, self._stamp = table.frame.sort("index"), stamp
        return self._frame

    @property
    def stamp(self) -> tuple[int, int, int] | None:
        self.frame()
        return self._stamp

    def names(self) -> tuple[str, ...]:
        return tuple(n for n in self.frame().columns if n not in MARKS and " " not in n)

    def series(self) -> list[pl.Series]:
        """The columns to show: every tag and its certainty, rows to drop, new labels."""
        frame, shown = self.frame(), []
        for name in self.names():
            shown += [frame[name], frame[f"{name} {SURE}"].alias(f"{name} {SURE}")]
        if bool((frame["weight"] <= 0).any()):
            shown.append((frame["weight"] <= 0).alias("to drop"))
        if frame["relabel"].null_count() < len(frame):
            shown.append(frame["relabel"].alias("new label"))
        return shown

    def mark(self, name: str, rows: Sequence[int], value: bool | None) -> int:
        """Mark rows by hand: the tag applies, does not, or (None) forget what was said. How many rows are marked now."""
        check_tag(name)
        taken = {*self.data.bias_names, *self.data.columns.columns, "label", "split", "path"}
        if name in taken or name in self.data.classes:
            raise UserError(f"a tag cannot be called {name!r}: {self.data.name} has a column or class of this name")
        index = self._rows(rows)

        def change(frame: pl.DataFrame) -> pl.DataFrame:
            if name not in frame.columns:
                empty = [pl.lit(None, pl.String).alias(name), pl.lit(None, pl.Float32).alias(f"{name} {SURE}")]
                frame = frame.with_columns(*empty, pl.lit(None, pl.Boolean).alias(f"{name} {HAND}"))
            columns = [_set(frame[f"{name} {HAND}"], index, value)]
            if value is not None:
                columns += [_set(frame[name], index, YES if value else NO), _set(frame[f"{name} {SURE}"], index, 1.0)]
            else:
                columns += [_set(frame[name], index, None), _set(frame[f"{name} {SURE}"], index, None)]
            return frame.with_columns(columns)

        frame = self._change(change)
        return len(frame) - frame[f"{name} {HAND}"].null_count()

    def hand(self, name: str) -> np.ndarray:
        """(N,) what was marked by hand: 1, 0, or -1 where nothing was."""
        known = self._known(name)
        return known[f"{name} {HAND}"].cast(pl.Int8).fill_null(-1).to_numpy().astype(np.int64)

    def spread(self, name: str, rows: np.ndarray, p: np.ndarray) -> None:
        """Write what a reader says of these rows; rows marked by hand since keep their mark."""
        self._known(name)

        def change(frame: pl.DataFrame) -> pl.DataFrame:
            said = pl.Series(np.where(p >= 0.5, YES, NO), dtype=pl.String)
            sure = pl.Series(np.maximum(p, 1 - p), dtype=pl.Float32)
            open_rows = frame[f"{name} {HAND}"].is_null().to_numpy()[rows]
            index = rows[open_rows]
            value = frame[name].clone().scatter(index, said.filter(pl.Series(open_rows)))
            certainty = frame[f"{name} {SURE}"].clone().scatter(index, sure.filter(pl.Series(open_rows)))
            return frame.with_columns(value.alias(name), certainty.alias(f"{name} {SURE}"))

        self._change(change)

    def forget(self, name: str) -> None:
        """Remove a tag."""
        self._known(name)
        self._change(lambda frame: frame.drop(name, f"{name} {SURE}", f"{name} {HAND}", strict=False))

    def drop(self, rows: Sequence[int], gone: bool) -> None:
        index = self._rows(rows)
        self._change(lambda frame: frame.with_columns(_set(frame["weight"], index, 0.0 if gone else 1.0)))

    def relabel(self, rows: Sequence[int], label: str | None) -> None:
        if self.data.multi_label:
            raise UserError("rows have several labels; only one class per row can be changed")
        if label is not None and label not in self.data.classes:
            raise UserError(f"no class {str(label)[:60]!r}{suggest(str(label), self.data.classes)}")
        index = self._rows(rows)
        self._change(lambda frame: frame.with_columns(_set(frame["relabel"], index, label)))

    def _known(self, name: str) -> pl.DataFrame:
        frame = self.frame()
        if name not in self.names():
            raise UserError(f"no tag {str(name)[:60]!r}{suggest(str(name), self.names())}")
        return frame

    def _rows(self, rows: Sequence[int]) -> np.ndarray:
        index = np.asarray(rows, dtype=np.int64)
        if not len(index) or int(index.min()) < 0 or int(index.max()) >= len(self.data):
            raise UserError(f"rows must be sample ids from 0 to {len(self.data) - 1}, at least one of them")
        return np.unique(index)

    def _change(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
        if not self.write:
            raise ReadOnly("the explorer is read-only; start it with --write to tag, drop or relabel rows")
        with self._mutex, alone(self.path, "explorer"):
            frame = change(self._fresh())
            Table(frame, self._made_by(frame)).save(self.path)
            there = self.path.stat()
            self._frame, self._stamp = frame, (there.st_mtime_ns, there.st_size, there.st_ino)
        return frame

    def _made_by(self, frame: pl.DataFrame) -> dict[str, Any]:
        data = self.data
        made_by = {
            "name": "explore",
            "use": "keep",
            "fingerprint": data.fingerprint,
            "files": data.files_digest,
            "source": data.source,
        }
        if frame["relabel"].null_count() < len(frame):
            made_by["relabelled"] = relabelled(data, Table(frame), str(self.path)).fingerprint
        return made_by


def _set(series: pl.Series, index: np.ndarray, value: Any) -> pl.Series:
    return series.clone().scatter(index, value)
