"""Image files with their columns as a DataSet: in memory if they fit, else streamed."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import torch
from torch import Tensor

from unskew import progress
from unskew.data._dataset import DataSet, Inputs, Memory
from unskew.data._files import Files, choose_side, read_all, too_many_bad

if TYPE_CHECKING:
    from unskew.data._sources import DataConfig


def image_set(
    root: Path,
    paths: Sequence[str],
    y: Tensor,
    classes: tuple[str, ...],
    split: Tensor,
    splits: tuple[str, ...],
    cfg: "DataConfig",
    *,
    bias: Tensor | None = None,
    bias_values: tuple[tuple[str, ...], ...] = (),
    columns: pl.DataFrame | None = None,
    notes: Sequence[str] = (),
    source: str = "",
) -> DataSet:
    """`paths` are relative to `root`, one per row; `source` is what the user named, if not `root`."""
    full = tuple(os.path.join(root, p) for p in paths)
    side, broken = choose_side(full, cfg.size)
    too_many_bad(broken, full, len(full), cfg.max_bad)
    files = Files(full, side)
    gigabytes = len(full) * 3 * side[0] * side[1] / 1e9
    inputs: Inputs = files
    if cfg.mode == "memory" or (cfg.mode == "auto" and gigabytes <= cfg.memory):
        with progress.bar("reading images", len(full)) as advance:
            x, broken = read_all(files, broken, advance)
        too_many_bad(broken, full, len(full), cfg.max_bad)
        readable = torch.ones(len(full), dtype=torch.bool)
        readable[list(broken)] = False
        inputs = Memory(x, readable if broken else None)
    digest = hashlib.blake2b(repr((classes, splits, side)).encode(), digest_size=16)
    for path, name in zip(full, paths, strict=True):
        digest.update(f"{name}\0{os.path.getsize(path)}\n".encode())
    for part in (y, split):
        digest.update(part.contiguous().numpy().tobytes())
    if broken:
        notes = [*notes, f"{len(broken)} images cannot be decoded and are left out"]
    return DataSet(
        name=root.name or str(root),
        source=source or str(root),
        inputs=inputs,
        y=y,
        classes=classes,
        split=split,
        splits=splits,
        bias=torch.zeros(len(y), 0, dtype=torch.long) if bias is None else bias,
        bias_names=tuple(cfg.bias),
        bias_values=bias_values,
        columns=pl.DataFrame() if columns is None else columns,
        paths=full,
        fingerprint=digest.hexdigest(),
        notes=tuple(notes),
        unreadable=tuple(sorted(broken.items())),
    )
