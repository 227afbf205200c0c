"""A Hugging Face data set saved on disk (`save_to_disk`): one data set, or a dictionary of splits. Needs unskew[datasets]."""

import dataclasses
import functools
import hashlib
import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
import torch
from PIL import Image
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.data.dataset import DataSet
from unskew.data.manifest import glimpse, in_words
from unskew.data.readers.files import fitted, to_rgb, too_many_bad
from unskew.data.readers.opening import FAILURES, opened, shrunk, upright
from unskew.data.readers.torch import from_inputs, from_rows, stack_pictures
from unskew.data.reading import DataConfig

_SPLITS = {"train": "train", "validation": "val", "valid": "val", "val": "val", "test": "test"}


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def from_saved(path: Path, cfg: DataConfig, source: str = "") -> DataSet:
    """`source` is what the user named, if not `path`."""
    try:
        import datasets
    except ImportError:
        raise UserError(f"{path} is a saved Hugging Face data set; install unskew[datasets] to read it") from None
    with refusing(f"{path} is a damaged Hugging Face data set; save it again"):
        datasets.disable_progress_bars()
        data = _from_loaded(datasets, datasets.load_from_disk(str(path)), path, cfg)
    return dataclasses.replace(data, name=source.rstrip("/").rpartition("/")[2], source=source) if source else data


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
    for _, part in parts:
        part.data.table.validate(full=True)  # Arrow ends the process when a damaged offset points outside of its column
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
    kinds = tuple(f"{split}:{len(part)}" for split, part in parts)
    stored = Saved(str(path), column or "", tuple(len(part) for _, part in parts))
    return _pictures(stored, columns, path, cfg, kinds)


def _vectors(x: Any, columns: pl.DataFrame, path: Path, cfg: DataConfig) -> DataSet:
    from unskew.data.readers.arrays import as_inputs

    return from_rows(as_inputs(x, f"{path}: features"), columns, path.name, str(path), cfg)


def _pictures(stored: "Saved", columns: pl.DataFrame, path: Path, cfg: DataConfig, kinds: tuple[str, ...]) -> DataSet:
    """In memory if they fit, as in every version so far; else decoded from the mapped files when they are needed."""
    n = sum(stored.counts)
    opening = (functools.partial(decoded, stored.stored(k), cfg.size, cfg.max_pixels) for k in range(n))
    side = (cfg.size, cfg.size) if cfg.size else _first_side(stored, n, cfg)
    if cfg.mode == "memory" or side is None or (cfg.mode == "auto" and n * 3 * side[0] * side[1] / 1e9 <= cfg.memory):
        x, readable = stack_pictures(opening, n, cfg, str(path))
        return from_rows(x, columns, path.name, str(path), cfg, readable)
    broken = stored.broken(cfg.max_pixels)
    too_many_bad(broken, [f"row {k} of {path}" for k in range(n)], n, cfg.max_bad)
    inputs = Mapped(stored, side, cfg.size, cfg.max_pixels)
    files = sorted(p for p in path.rglob("*") if p.suffix == ".arrow")
    content = hashlib.sha256(b"".join(p.name.encode() + glimpse(str(p)) for p in files)).hexdigest()
    return from_inputs(inputs, columns, path.name, str(path), cfg, broken=broken, content=f"{content} {kinds} {side}")


def _first_side(stored: "Saved", n: int, cfg: DataConfig) -> tuple[int, int] | None:
    """Height and width of the first picture that can be decoded: all others are fitted to it."""
    for k in range(n):
        try:
            image = upright(decoded(stored.stored(k), cfg.size, cfg.max_pixels))
            return image.height, image.width
        except FAILURES:
            continue
    return None


def decoded(stored: Any, size: int, most: int) -> Image.Image:
    """One stored image: its bytes, or the file that it names."""
    with opened(_file(stored), most) as image:
        small = shrunk(image, size) if size else image
        small.load()
        return small.copy()


def _file(stored: Any) -> str | IO[bytes]:
    if not isinstance(stored, dict) or not (stored.get("bytes") or stored.get("path")):
        raise ValueError("there is no image")
    return io.BytesIO(stored["bytes"]) if stored.get("bytes") else str(stored["path"])


@dataclasses.dataclass(frozen=True)
class Saved:
    """The pictures of a saved data set, in files that are mapped into memory by each process that looks at them."""

    path: str
    column: str
    counts: tuple[int, ...]  # rows of the parts

    def stored(self, row: int) -> Any:
        part = 0
        while row >= self.counts[part]:
            row -= self.counts[part]
            part += 1
        return _mapped(self.path, self.column, os.getpid())[part][row][self.column]

    def broken(self, most: int) -> dict[int, str]:
        """The rows whose header cannot be read, and why."""
        broken = {}
        total = sum(self.counts)
        with progress.bar("opening pictures", total) as advance:
            for row in range(total):
                stored = self.stored(row)
                try:
                    with opened(_file(stored), most):
                        pass
                except FAILURES as error:
                    broken[row] = in_words(error)
                advance()
        return broken


@functools.lru_cache(maxsize=4)
def _mapped(path: str, column: str, process: int) -> list[Any]:
    """The parts of a saved data set as this process maps them, pictures as they are stored."""
    import datasets

    loaded = datasets.load_from_disk(path)
    parts = list(loaded.values()) if isinstance(loaded, datasets.DatasetDict) else [loaded]
    return [part.cast_column(column, datasets.Image(decode=False)) for part in parts]


@dataclasses.dataclass(frozen=True)
class Mapped:
    """Inputs decoded on demand from mapped files. Picklable, for worker processes."""

    saved: Saved
    side: tuple[int, int]
    size: int
    max_pixels: int
    in_memory: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, *self.side)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.zeros(len(index), *self.shape, dtype=torch.uint8)
        fine = torch.ones(len(index), dtype=torch.bool)
        for k, row in enumerate(index.tolist()):
            stored = self.saved.stored(row)
            try:
                x[k] = fitted(to_rgb(upright(decoded(stored, self.size, self.max_pixels))), self.side)
            except FAILURES:
                fine[k] = False
        return x, fine
