"""Data already in memory: a pandas or polars frame, or a pair (X, y) of arrays."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.data.duplicates import of_pixels
from unskew.data.readers import columns
from unskew.data.readers.arrays import as_inputs, label_matrix
from unskew.data.readers.table import PATH_NAMES, from_labels, from_rows_of_files
from unskew.data.readers.torch import from_rows
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle


def is_frame(source: Any) -> bool:
    """Whether it is a pandas or polars frame, without importing pandas."""
    return isinstance(source, pl.DataFrame) or f"{type(source).__module__}.".startswith("pandas.")


def from_frame(source: Any, cfg: DataConfig) -> DataSet:
    """Rows of a frame: the files in a path column, or else the numbers in all columns except label, bias and split.

    Without either, labels and attributes alone.
    """
    frame = source if isinstance(source, pl.DataFrame) else _from_pandas(source)
    if not len(frame):
        raise UserError("the frame has no rows")
    if any(name in frame.columns for name in PATH_NAMES):
        data = from_rows_of_files(frame, Path.cwd(), "the frame", "", cfg)
        return dataclasses.replace(data, name="frame", source="")  # a frame cannot be read again by name
    labels = cfg.label or tuple(n for n in columns.LABEL_NAMES if n in frame.columns)[:1]
    used = {*labels, *cfg.bias, cfg.split or "split", cfg.group, cfg.order}
    numbers = [n for n in frame.columns if n not in used and (frame[n].dtype.is_numeric() or frame[n].dtype == pl.Boolean)]
    if not numbers:
        return from_labels(frame, "frame", "the frame", "", cfg)
    x = as_inputs(frame.select(pl.col(numbers).cast(pl.Float64)).to_numpy(), "the frame's numbers")
    return from_rows(x, frame, "frame", "", cfg)


def _from_pandas(source: Any) -> pl.DataFrame:
    """Convert through Arrow if pyarrow is installed, else column by column."""
    try:
        frame: pl.DataFrame = pl.from_pandas(source)
    except ImportError:
        frame = pl.DataFrame({str(n): source[n].to_list() for n in source.columns}, strict=False)
    return frame.rename({n: str(n) for n in frame.columns})


def is_pair(source: Any) -> bool:
    """Whether it is a pair of arrays: inputs and labels."""
    return isinstance(source, tuple) and len(source) == 2 and all(_is_array(part) for part in source)


def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, Tensor, pl.Series, list)) or f"{type(part).__module__}.".startswith("pandas.")


def from_pair(source: tuple[Any, Any], cfg: DataConfig) -> DataSet:
    """Inputs (N, ...) and labels: class codes or text (N,), or zeros and ones (N, L)."""
    x, y = (part.detach().cpu().numpy() if isinstance(part, Tensor) else np.asarray(part) for part in source)
    if x.ndim < 2 or len(x) != len(y) or not len(x):
        raise UserError(
            f"(X, y): X has shape {x.shape} and y {y.shape}; both need the same number of rows, and X at least two dimensions"
        )
    for name in (*cfg.bias[:1], cfg.group, cfg.order):
        if name:
            raise UserError(
                f"(X, y) has no column {name!r}; pass a frame, or a data set whose rows are dicts with x, y and {name}"
            )
    inputs = as_inputs(x, "X")
    if y.ndim == 2:
        matrix, classes = label_matrix(y, "y")
        split, splits = columns.splits(pl.DataFrame({"y": y[:, 0]}), cfg, "(X, y)")
        twins = (lambda: of_pixels(inputs)) if inputs.ndim == 4 else None
        settled = settle(matrix, split, cfg, "(X, y)", twins=twins)
        return DataSet(name="arrays", inputs=Memory(inputs), y=matrix, classes=classes, splits=splits, **settled.fields())
    if y.ndim != 1:
        raise UserError(f"(X, y): y has shape {y.shape}; allowed: class codes or text (N,), or zeros and ones (N, L)")
    return from_rows(inputs, pl.DataFrame({"label": y.tolist()}, strict=False), "arrays", "", cfg)
