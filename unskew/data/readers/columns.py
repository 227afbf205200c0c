"""Columns of a user's table as codes: labels, bias columns, splits. Every error names the column and row."""

import re
from collections.abc import Sequence

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError, suggest
from unskew.data.dataset import SPLITS
from unskew.data.reading import DataConfig

LABEL_NAMES = ("label", "y", "class", "target", "labels")
_SPLIT_WORDS = {
    "train": 0, "training": 0, "0": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "1": 1,
    "test": 2, "testing": 2, "2": 2,
}  # fmt: skip


def codes(series: pl.Series, where: str) -> tuple[Tensor, tuple[str, ...]]:
    """A categorical column as codes (-1 = missing) and the names of its values, numbers in numeric order.

    >>> codes(pl.Series("a", ["x", None, "b"]), "t")
    (tensor([ 1, -1,  0]), ('b', 'x'))
    """
    if series.dtype.is_nested():
        raise UserError(f"{where}: column {series.name!r} holds {series.dtype}, not single values")
    if series.dtype.is_float():
        series = series.fill_nan(None)
        whole = series.drop_nulls()
        if not bool((whole.abs() < 2**53).all()):  # also infinity; above, neighbouring whole numbers are one
            raise UserError(f"{where}: column {series.name!r} holds infinity or numbers too large to be categories")
        fractions = whole.filter(whole != whole.round())
        if len(fractions):
            raise UserError(f"{where}: column {series.name!r} holds fractions such as {fractions[0]:g}; it must hold categories")
        series = series.cast(pl.Int64)
    if series.dtype == pl.Categorical or isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String:
        series = series.str.strip_chars().replace("", None)
    values = series.drop_nulls().unique().sort()
    if len(values) > 1000 and len(values) > len(series) / 2:
        raise UserError(
            f"{where}: column {series.name!r} has {len(values)} values in {len(series)} rows; it must hold categories"
        )
    names = tuple(str(v) for v in values.to_list())
    if not names:
        return torch.full((len(series),), -1), names
    # In polars: a Python object for every row of ten million would take gigabytes.
    coded = series.replace_strict(values, pl.Series(range(len(values)), dtype=pl.Int64), default=None, return_dtype=pl.Int64)
    return torch.from_numpy(coded.fill_null(-1).to_numpy().copy()), names


def labels(frame: pl.DataFrame, cfg: DataConfig, where: str) -> tuple[Tensor, tuple[str, ...]]:
    """(N,) class codes, or (N, L) zeros and ones from a list column or from several columns."""
    names = cfg.label or tuple(n for n in LABEL_NAMES if n in frame.columns)[:1]
    if not names:
        raise UserError(f"{where}: no label column; it has {', '.join(frame.columns)}; name one with --label")
    for name in names:
        need(frame, name, "label", where)
    if len(names) > 1:
        return _label_columns(frame.select(names), where), names
    series = frame[names[0]]
    if isinstance(series.dtype, (pl.List, pl.Array)):
        if series.dtype.inner.is_nested() or series.dtype.inner.is_float():  # type: ignore[union-attr,unused-ignore]
            raise UserError(f"{where}: column {series.name!r} holds {series.dtype}; a list of labels holds text or whole numbers")
        return _label_lists(series, where)
    y, classes = codes(series, where)
    if bool((y < 0).any()):
        row = int((y < 0).nonzero()[0])
        raise UserError(
            f"{where}: {int((y < 0).sum())} rows have no label in column {names[0]!r}, first in row {row + 1}; "
            "fill them in or remove them"
        )
    return y, classes


def _label_columns(frame: pl.DataFrame, where: str) -> Tensor:
    columns = []
    for series in frame:
        numbers = series.cast(pl.Float64, strict=False)
        if numbers.null_count():
            row = int(numbers.is_null().arg_max() or 0)
            raise UserError(f"{where}: label column {series.name!r} must hold 0 and 1, got {series[row]!r} in row {row + 1}")
        if not numbers.is_in([0.0, 1.0, -1.0]).all():
            raise UserError(f"{where}: label column {series.name!r} of a multi-label task must hold 0 and 1")
        columns.append(torch.from_numpy((numbers > 0).to_numpy().copy()))
    return torch.stack(columns, 1).float()


def _label_lists(series: pl.Series, where: str) -> tuple[Tensor, tuple[str, ...]]:
    if series.null_count():
        row = int(series.is_null().arg_max() or 0)
        raise UserError(f"{where}: row {row + 1} has no list of labels in column {series.name!r}")
    lists = series.to_list()
    classes = sorted({v for row in lists for v in row if v is not None})
    place = {v: k for k, v in enumerate(classes)}
    if len(classes) > 1000 and len(classes) > len(lists) / 2:
        raise UserError(
            f"{where}: column {series.name!r} has {len(classes)} labels in {len(lists)} rows; it must hold categories"
        )
    y = torch.zeros(len(lists), len(classes))
    for k, row in enumerate(lists):
        y[k, [place[v] for v in row if v is not None]] = 1
    return y, tuple(map(str, classes))


def biases(frame: pl.DataFrame, names: Sequence[str], where: str) -> tuple[Tensor, tuple[tuple[str, ...], ...]]:
    """(N, A) codes of the named bias columns, -1 where missing, and their values."""
    coded, values = [], []
    for name in names:
        need(frame, name, "bias", where)
        code, words = codes(frame[name], where)
        if len(words) < 1:
            raise UserError(f"{where}: bias column {name!r} is empty")
        coded.append(code)
        values.append(words)
    if not coded:
        return torch.zeros(len(frame), 0, dtype=torch.long), ()
    return torch.stack(coded, 1), tuple(values)


def splits(frame: pl.DataFrame, cfg: DataConfig, where: str) -> tuple[Tensor, tuple[str, ...]]:
    """Split codes as the source gives them, all 0 (train) if it does not, and the names of the splits."""
    if cfg.split:
        need(frame, cfg.split, "split", where)
    name = cfg.split or ("split" if "split" in frame.columns else "")
    if not name:
        return torch.zeros(len(frame), dtype=torch.long), SPLITS
    words = [str(v).strip().lower() for v in frame[name].to_list()]
    # A split's name becomes the name of files: test_biased is fine, test/../../elsewhere is not.
    extra = sorted({w for w in words if w not in _SPLIT_WORDS and re.fullmatch(r"test[\w.+-]{0,60}", w)})
    known = _SPLIT_WORDS | {w: 3 + k for k, w in enumerate(extra)}
    unknown = next((k for k, w in enumerate(words) if w not in known), None)
    if unknown is not None:
        raise UserError(f"{where}: row {unknown + 1} has split {frame[name][unknown]!r}; allowed: train, val, test")
    return torch.tensor([known[w] for w in words]), (*SPLITS, *extra)


def need(frame: pl.DataFrame, name: str, role: str, where: str) -> None:
    if name not in frame.columns:
        raise UserError(f"{where}: no {role} column {name!r}{suggest(name, frame.columns)}")
