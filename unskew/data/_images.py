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
from unskew.data._hide import hiding

if TYPE_CHECKING:
    from unskew.data._sources import DataConfig


def glimpse(path: str, bytes_each: int = 4096) -> bytes:
    """Size, beginning, middle and end of a file: enough to notice that it was replaced, cheap enough for every file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        parts = [b"%d" % size]
        for place in sorted({0, max(0, size // 2 - bytes_each // 2), max(0, size - bytes_each)}):
            file.seek(place)
            parts.append(file.read(bytes_each))
    return hashlib.sha256(b"|".join(parts)).digest()


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
    carved: tuple[str, ...] = (),
    source: str = "",
) -> DataSet:
    """`paths` are relative to `root`, one per row; `source` is what the user named, if not `root`."""
    full = tuple(os.path.join(root, p) for p in paths)
    side, broken = choose_side(full, cfg.size)
    too_many_bad(broken, full, len(full), cfg.max_bad)
    hidden = hiding(pl.DataFrame() if columns is None else columns, cfg, source or str(root), root)
    files = Files(full, side, hidden)
    gigabytes = len(full) * 3 * side[0] * side[1] / 1e9
    inputs: Inputs = files
    if cfg.mode == "memory" or (cfg.mode == "auto" and gigabytes <= cfg.memory):
        with progress.bar("reading images", len(full)) as advance:
            x, broken = read_all(files, broken, advance)
        too_many_bad(broken, full, len(full), cfg.max_bad)
        readable = torch.ones(len(full), dtype=torch.bool)
        readable[list(broken)] = False
        inputs = Memory(x, readable if broken else None)
    bias = torch.zeros(len(y), 0, dtype=torch.long) if bias is None else bias
    digest = hashlib.sha256(repr((classes, splits, side, tuple(cfg.bias), bias_values)).encode("utf-8", "surrogateescape"))
    if hidden is not None:
        digest.update(repr((hidden.how, hidden.radius, hidden.covers)).encode("utf-8", "surrogateescape"))
    for path, name in zip(full, paths, strict=True):
        digest.update(os.fsencode(name) + b"\0" + glimpse(path))
    for part in (y, split, bias):
        digest.update(part.contiguous().numpy().tobytes())
    notes = [f"{len(broken)} images cannot be decoded and are left out"] if broken else []
    notes += [hidden.note] if hidden is not None else []
    return DataSet(
        name=root.name or str(root),
        source=source or str(root),
        inputs=inputs,
        y=y,
        classes=classes,
        split=split,
        splits=splits,
        bias=bias,
        bias_names=tuple(cfg.bias),
        bias_values=bias_values,
        columns=pl.DataFrame() if columns is None else columns,
        paths=full,
        fingerprint=digest.hexdigest()[:32],
        carved=carved,
        notes=tuple(notes),
        unreadable=tuple(sorted(broken.items())),
    )
