"""A Hugging Face data set saved on disk (`save_to_disk`): one data set, or a dictionary of splits. Needs unskew[datasets]."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.reading import DataConfig

_SPLITS = {"train": "train", "validation": "val", "valid": "val", "val": "val", "test": "test"}


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def from_saved(path: Path, cfg: DataConfig) -> DataSet:
    try:
        import datasets
    except ImportError:
        raise UserError(f"{path} is a saved Hugging Face data set; install unskew[datasets] to read it") from None
    loaded = datasets.load_from_disk(str(path))
    if isinstance(loaded, datasets.DatasetDict):
        unknown = [s for s in loaded if s not in _SPLITS]
        if unknown:
            raise UserError(f"{path}: unknown split {unknown[0]!r}; allowed: train, validation, test")
        parts: list[tuple[str, Any]] = [(_SPLITS[s], d) for s, d in loaded.items()]  # validation and val may both be there
    else:
        parts = [("", loaded)]
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
        x = np.concatenate([np.asarray(part.with_format("numpy")[column]) for _, part in parts])
        return _vectors(x, columns, path, cfg)
    rows = [(part, k) for _, part in parts for k in range(len(part))]
    return _pictures(rows, column or "", columns, path, cfg)


def _vectors(x: Any, columns: pl.DataFrame, path: Path, cfg: DataConfig) -> DataSet:
    from unskew.data.readers.arrays import as_inputs
    from unskew.data.readers.torch import from_rows

    return from_rows(as_inputs(x, f"{path}: features"), columns, path.name, str(path), cfg)


def _pictures(rows: list[tuple[Any, int]], column: str, columns: pl.DataFrame, path: Path, cfg: DataConfig) -> DataSet:
    from unskew.data.readers.torch import from_rows, stack_pictures

    x, readable = stack_pictures((part[k][column] for part, k in rows), len(rows), cfg, str(path))
    return from_rows(x, columns, path.name, str(path), cfg, readable)
