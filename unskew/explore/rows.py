"""Columns as codes in memory, and what is asked of them: which rows pass, how many of each value, which come first."""

import base64
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.core.errors import UserError, suggest

MOST_VALUES = 200  # of a column that is shown as a list of values
MANY = 20  # values; more than these, and than half of the rows, are names
FEW_NUMBERS = 12  # whole numbers with at most so many values are values too
BINS = 40
VIEWS = 16  # orders of rows that are remembered
NONE = "(none)"  # where a row has no value
MAP = ("map x", "map y")  # the places of rows on the map: conditions on both are one brush


@dataclass(frozen=True)
class Column:
    """One column: values with a code per row, numbers with a bin per row, or text to search."""

    name: str
    kind: str  # values, number or text
    series: pl.Series  # as it is shown: text, or numbers
    code: pl.Series | None = None  # UInt8 or UInt16: the value, or the bin; the last code is that of rows without one
    values: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    origin: str = ""  # "tag" for a tag of the user's

    @cached_property
    def searched(self) -> pl.Series:
        return self.series.str.to_lowercase()

    def json(self) -> dict[str, Any]:
        about = {"name": self.name, "kind": self.kind, "origin": self.origin}
        return about | {"values": list(self.values), "edges": list(self.edges)}


def column(series: pl.Series, origin: str = "") -> Column | None:
    """A series as a column; None if it says nothing about any row.

    >>> column(pl.Series("a", ["x", None, "b"])).values
    ('b', 'x', '(none)')
    """
    if series.null_count() == len(series):
        return None
    if series.dtype == pl.Boolean:
        series = series.replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    if series.dtype.is_numeric():
        if series.dtype.is_integer() and series.n_unique() <= FEW_NUMBERS:
            return _values(series.cast(pl.String), series.drop_nulls().unique().sort().cast(pl.String).to_list(), origin)
        return _number(series, origin)
    text = series.cast(pl.String)
    values = text.n_unique()
    if values > MOST_VALUES + 1 or values > max(MANY, len(text) // 2):
        return Column(series.name, "text", text, origin=origin)
    return _values(text, text.drop_nulls().unique().sort().to_list(), origin)


def _values(text: pl.Series, values: list[str], origin: str) -> Column:
    named = (*values, *([NONE] if text.null_count() else []))
    kind = pl.UInt8 if len(named) < 256 else pl.UInt16
    code = text.cast(pl.Enum(values)).to_physical().cast(kind).fill_null(len(values)) if values else None
    return Column(text.name, "values", text, code, named, origin=origin)


def _number(series: pl.Series, origin: str) -> Column:
    number = series.cast(pl.Float32)
    array = number.to_numpy()
    finite = np.isfinite(array)
    if not finite.any():
        return Column(series.name, "text", series.cast(pl.String), origin=origin)
    low, high = float(array[finite].min()), float(array[finite].max())
    high = high if high > low else low + 1.0
    share = (np.where(finite, array, low).astype(np.float64) - low) / (high - low)
    place = np.where(finite, np.clip(share * BINS, 0, BINS - 1), BINS)
    edges = tuple(float(e) for e in np.linspace(low, high, BINS + 1))
    return Column(series.name, "number", number, pl.Series(place.astype(np.uint8)), edges=edges, origin=origin)


def _all(masks: Iterable[pl.Series]) -> pl.Series | None:
    found: pl.Series | None = None
    for mask in masks:
        found = mask if found is None else found & mask
    return found


@dataclass
class Rows:
    """All columns of a data set. Replaced columns get a new version, so that no order of rows outlives them."""

    size: int
    columns: dict[str, Column]
    version: int = 0
    _views: "OrderedDict[str, np.ndarray]" = field(default_factory=OrderedDict)
    _totals: tuple[int, dict[str, list[int]]] = (-1, {})  # counts of all rows, and of which version
    _orders: dict[str, np.ndarray] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, frame: pl.DataFrame, size: int) -> "Rows":
        made = (column(series) for series in frame)
        return cls(size, {one.name: one for one in made if one is not None})

    def put(self, series: Sequence[pl.Series], origin: str, gone: Sequence[str] = ()) -> None:
        """Add or replace columns, and remove those that are `gone`."""
        made = [one for one in (column(s, origin) for s in series) if one is not None]
        missing = {s.name for s in series} - {one.name for one in made}
        with self._lock:
            kept = {name: one for name, one in self.columns.items() if name not in {*gone, *missing}}
            self.columns = kept | {one.name: one for one in made}
            self.version += 1
            self._views.clear()

    def named(self, name: str) -> Column:
        if name not in self.columns:
            raise UserError(f"no column {str(name)[:60]!r}{suggest(str(name), self.columns)}")
        return self.columns[name]

    def passing(self, where: Mapping[str, Any]) -> dict[str, pl.Series]:
        """For each condition, booleans of the rows that pass it."""
        return {name: self._passes(self.named(name), condition) for name, condition in where.items()}

    def _passes(self, one: Column, condition: Any) -> pl.Series:
        if not isinstance(condition, dict) or len(condition) != 1:
            raise UserError(f"a condition on {one.name} is one of in, between and contains, got {str(condition)[:60]}")
        if "in" in condition and one.kind == "values" and one.code is not None:
            wanted = condition["in"] if isinstance(condition["in"], list) else []
            table = np.array([value in wanted for value in one.values])
            return pl.Series(table[one.code.to_numpy()])
        if "between" in condition and one.kind == "number":
            try:
                low, high = (float(v) for v in condition["between"])
            except (TypeError, ValueError):
                raise UserError(f"between takes two numbers for {one.name}, got {str(condition['between'])[:60]}") from None
            return one.series.is_between(low, high).fill_null(False)
        if "contains" in condition and one.kind != "number":
            return one.searched.str.contains(str(condition["contains"]).lower(), literal=True).fill_null(False)
        raise UserError(f"{one.name} holds {one.kind}: it cannot be asked for {next(iter(condition))!r}")

    def view(self, where: Mapping[str, Any], sort: str = "", descending: bool = False) -> "View":
        """The rows that pass, in order, remembered under a name."""
        asked = json.dumps([self.version, where, sort, descending], sort_keys=True)
        key = hashlib.sha256(asked.encode()).hexdigest()[:16]
        passing = self.passing(where)
        mask = _all(passing.values())
        if sort:
            one = self.named(sort)
            by = one.code if one.kind == "values" and one.code is not None else one.series
            order = self._order(one.name, by, descending)
            ids = order if mask is None else order[mask.to_numpy()[order]]
        else:
            ids = np.arange(self.size, dtype=np.uint32) if mask is None else mask.arg_true().to_numpy()
        with self._lock:
            self._views[key] = ids = ids.astype(np.uint32, copy=False)
            self._views.move_to_end(key)
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return View(key, ids, passing, mask)

    def _order(self, name: str, by: pl.Series, descending: bool) -> np.ndarray:
        """All rows in the order of a column, remembered while the columns stay."""
        key = f"{self.version} {descending} {name}"
        with self._lock:
            known = self._orders.get(key)
        if known is None:
            known = by.arg_sort(descending=descending, nulls_last=True).to_numpy().astype(np.uint32)
            with self._lock:
                self._orders = {key: known}
        return known

    def recall(self, key: str) -> np.ndarray:
        with self._lock:
            if key not in self._views:
                raise UserError("this view is no longer remembered; ask for it again")
            return self._views[key]

    def counts(self, view: "View") -> dict[str, list[int]]:
        """How many rows of each value or bin pass the conditions on the other columns."""
        if not view.passing and self._totals[0] == self.version:
            return self._totals[1]
        found, version = {}, self.version
        for name, one in self.columns.items():
            if one.code is None or name in MAP:
                continue
            mask = _all(p for n, p in view.passing.items() if n != name) if name in view.passing else view.mask
            length = len(one.values) if one.kind == "values" else BINS + 1
            code = one.code if mask is None else one.code.filter(mask)
            found[name] = np.bincount(code.to_numpy(), minlength=length).tolist()
        if not view.passing:
            self._totals = (version, found)
        return found

    def bits(self, view: "View", ids: np.ndarray) -> str:
        """For the points of a map: which pass the conditions on the other columns, packed, in base 64."""
        mask = _all(p for n, p in view.passing.items() if n not in MAP)
        passes = np.ones(len(ids), dtype=bool) if mask is None else mask.to_numpy()[ids]
        return base64.b64encode(np.packbits(passes).tobytes()).decode()


@dataclass(frozen=True)
class View:
    """Rows that pass some conditions: their ids in order, and for each condition the rows that pass it."""

    key: str
    ids: np.ndarray
    passing: dict[str, pl.Series]
    mask: pl.Series | None
