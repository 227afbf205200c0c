"""A Hugging Face data set saved on disk (`save_to_disk`): one data set, or a dictionary of splits. Needs unskew[datasets]."""

import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.data.dataset import DataSet
from unskew.data.readers.opening import opened, shrunk
from unskew.data.reading import DataConfig

_SPLITS = {"train": "train", "validation": "val", "valid": "val", "val": "val", "test": "test"}


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def from_saved(path: Path, cfg: DataConfig) -> DataSet:
    try:
        import datasets
    except ImportError:
        raise UserError(f"{path} is a saved Hugging Face data set; install unskew[datasets] to read it") from None
    with refusing(f"{path} is a damaged Hugging Face data set; save it again"):
        datasets.disable_progress_bars()
        return _from_loaded(datasets, datasets.load_from_disk(str(path)), path, cfg)


def _from_loaded(datasets: Any, loaded: Any, path: Path, cfg: DataConfig) -> DataSet:
    if isinstance(loaded, datasets.DatasetDict):
        unknown = [s for s in loaded if s not in _SPLITS]
        if unknown:
            raise UserError(f"{path}: unknown split {unknown[0]!r}; allowed: train, validation, test")
        parts: list[tuple[str, Any]] = [(_SPLITS[s], d) for s, d in loaded.items()]  # validation and val may both be there
    else:
        parts = [("", loaded)]
    if not sum(len(part) for _, part in parts):
        raise UserError(f"{path}: the data set has no rows")
    first = parts[0][1]
    image = next((n for n, f in first.features.items() if isinstance(f, datasets.Image)), None)
    vector = next((n for n in ("x", "features") if n in first.column_names), None)
    if image is None and vector is None:
        raise UserError(f"{path}: no image column and no 'x' or 'features'; it has {', '.join(first.column_names)}")
    column = image or vector
    frames = []
    for split, part in parts:
        frame = pl.from_arrow(part.remove_columns([column]).with_format("arrow")[:])
        assert isinstance(frame, pl.DataFrame)
        for name, feature in part.features.items():
            if isinstance(feature, datasets.ClassLabel) and name in frame.columns:
                names = dict(enumerate(feature.names))
                frame = frame.with_columns(pl.col(name).replace_strict(names, default=None, return_dtype=pl.String))
        frames.append(frame.with_columns(pl.lit(split).alias("split")) if split else frame)
    columns = pl.concat(frames)
    if image is None:
        vectors = [row for _, part in parts for row in part.with_format("numpy")[column]]
        shapes = {np.shape(row) for row in vectors}
        if len(shapes) > 1:
            raise UserError(f"{path}: {column!r} has rows of different shapes, such as {sorted(map(str, shapes))[:3]}")
        return _vectors(np.stack([np.asarray(row) for row in vectors]), columns, path, cfg)
    raw = [part.cast_column(column, datasets.Image(decode=False)) for _, part in parts]
    rows = [(part, k) for part in raw for k in range(len(part))]
    return _pictures(rows, column or "", columns, path, cfg)


def _vectors(x: Any, columns: pl.DataFrame, path: Path, cfg: DataConfig) -> DataSet:
    from unskew.data.readers.arrays import as_inputs
    from unskew.data.readers.torch import from_rows

    return from_rows(as_inputs(x, f"{path}: features"), columns, path.name, str(path), cfg)


def _pictures(rows: list[tuple[Any, int]], column: str, columns: pl.DataFrame, path: Path, cfg: DataConfig) -> DataSet:
    from unskew.data.readers.torch import from_rows, stack_pictures

    def picture(stored: Any) -> Image.Image:
        """One stored image, decoded: its bytes, or the file that it names."""
        if not isinstance(stored, dict) or not (stored.get("bytes") or stored.get("path")):
            raise ValueError("there is no image")
        with opened(io.BytesIO(stored["bytes"]) if stored.get("bytes") else stored["path"], cfg.max_pixels) as image:
            small = shrunk(image, cfg.size) if cfg.size else image
            small.load()
            return small.copy()

    pictures = (functools.partial(picture, part[k][column]) for part, k in rows)
    x, readable = stack_pictures(pictures, len(rows), cfg, str(path))
    return from_rows(x, columns, path.name, str(path), cfg, readable)
