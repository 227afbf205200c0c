r"""column: any other column of the table: what is known about a row besides its image.

.. math::  \phi = \text{one-hot code of the value}, \quad \text{or the number itself if there are more than 50 values}

Missing values count as a separate value (or as the mean, for numbers).

Source: the known-bias case of every paper.
Differs: nothing.
"""

from dataclasses import dataclass

import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import suggest
from unskew.data.dataset import DataSet
from unskew.data.readers.columns import LABEL_NAMES

PIXELS, CONTENT, FOREIGN, CACHED = False, False, True, False
MOST = 50  # distinct values up to which a column is a category
_SKIPPED = {*LABEL_NAMES, "file_name", "img_filename", "filename", "path", "split", "clean_label", "index", "id"}


@dataclass(frozen=True)
class Config:
    name: str  # the column


def variants(data: DataSet) -> list[dict[str, str]]:
    """One for every bias column, and for every other column except label, path, split and row number."""
    chosen = list(data.bias_names)
    for series in data.columns:
        if series.name in chosen or series.name in _SKIPPED or series.name in data.classes:
            continue
        if isinstance(series.dtype, (pl.List, pl.Array)) or "," in series.name or "=" in series.name:
            continue
        distinct = series.n_unique()
        if 2 <= distinct <= MOST or (distinct > MOST and series.dtype.is_numeric() and not _counts_rows(series)):
            chosen.append(series.name)
    return [{"name": name} for name in chosen if "," not in name and "=" not in name]


def _counts_rows(series: pl.Series) -> bool:
    return series.dtype.is_integer() and series.n_unique() == len(series)


def phrase(cfg: Config) -> str:
    return f"the column {cfg.name}"


def applies(data: DataSet, cfg: Config) -> str:
    if cfg.name in data.bias_names or cfg.name in data.columns.columns:
        return ""
    return f"no column {cfg.name!r}{suggest(cfg.name, [*data.bias_names, *data.columns.columns])}"


def features(data: DataSet, index: Tensor, x: Tensor | None, cfg: Config) -> Tensor:
    if cfg.name in data.bias_names:
        k = data.bias_names.index(cfg.name)
        return F.one_hot(data.bias[index, k] + 1, len(data.bias_values[k]) + 1).float()
    series = data.columns[cfg.name]
    if series.n_unique() > MOST and series.dtype.is_numeric():
        numbers = series.cast(pl.Float64).fill_nan(None)
        values = torch.from_numpy(numbers.fill_null(numbers.mean() if len(numbers.drop_nulls()) else 0.0).to_numpy().copy())
        # Centred while still in double precision: a time in seconds has more digits than a 32-bit float.
        return ((values - values.mean()) / values.std().clamp(min=1e-300))[index][:, None].float()
    codes = series.cast(pl.String).fill_null("").rank("dense").to_numpy().astype("int64") - 1
    return F.one_hot(torch.from_numpy(codes)[index], int(codes.max()) + 1).float()
