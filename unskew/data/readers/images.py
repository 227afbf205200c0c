"""Image files and their columns as a DataSet: in memory if they fit, else streamed."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.duplicates import of_files
from unskew.data.hide import hiding
from unskew.data.readers.files import Files, check_names, choose_side, read_all, too_many_bad
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle


def as_built(folder: Path, cfg: DataConfig) -> DataConfig:
    """The settings for a folder that may be `unskew data`'s: such a set has the splits that it is meant to have."""
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return cfg
    ours = isinstance(card, dict) and {"fingerprint", "rows", "classes"} <= set(card)
    return dataclasses.replace(cfg, holdout=0.0, duplicates=False) if ours else cfg


def glimpse(path: str, bytes_each: int = 4096) -> bytes:
    """Digest of a file's size, start, middle and end: enough to notice a replaced file, cheap enough for every file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        parts = [b"%d" % size]
        for place in sorted({0, max(0, size // 2 - bytes_each // 2), max(0, size - bytes_each)}):
            file.seek(place)
            parts.append(file.read(bytes_each))
    return hashlib.sha256(b"|".join(parts)).digest()


def fingerprints(
    facts: tuple[object, ...],
    files: bytes,
    labels: Sequence[Tensor],
    bias: Tensor,
    bias_names: tuple[str, ...],
    bias_values: tuple[tuple[str, ...], ...],
) -> tuple[str, str]:
    """Fingerprints of rows in files: without their bias columns, and with them, as in version 0.1."""
    prints = []
    for names, values, codes in (((), (), bias[:, :0]), (bias_names, bias_values, bias)):
        digest = hashlib.sha256(repr((*facts, names, values)).encode("utf-8", "surrogateescape") + files)
        for part in (*labels, codes):
            digest.update(part.contiguous().numpy().tobytes())
        prints.append(digest.hexdigest()[:32])
    return prints[0], prints[1]


def image_set(
    root: Path,
    paths: Sequence[str],
    y: Tensor,
    classes: tuple[str, ...],
    split: Tensor,
    splits: tuple[str, ...],
    cfg: DataConfig,
    *,
    bias: Tensor | None = None,
    bias_values: tuple[tuple[str, ...], ...] = (),
    columns: pl.DataFrame | None = None,
    source: str = "",
) -> DataSet:
    """A data set of image files. `paths` are relative to `root`, one per row; `source` is what the user named, if not `root`."""
    full = tuple(os.path.join(root, p) for p in paths)
    check_names((*paths, *classes), source or str(root))
    side, broken = choose_side(full, cfg.size, most=cfg.max_pixels)
    too_many_bad(broken, full, len(full), cfg.max_bad)
    hidden = hiding(pl.DataFrame() if columns is None else columns, cfg, source or str(root), root)
    files = Files(full, side, hidden, max_pixels=cfg.max_pixels)
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
    seen = b"".join(os.fsencode(name) + b"\0" + glimpse(path) for path, name in zip(full, paths, strict=True))
    settled = settle(
        y, split, cfg, source or str(root), columns=columns, paths=paths, twins=lambda: of_files(full, seen, most=cfg.max_pixels)
    )  # fmt: skip
    covered = b"" if hidden is None else repr((hidden.how, hidden.radius, hidden.covers)).encode("utf-8", "surrogateescape")
    fingerprint, former = fingerprints(
        (classes, splits, side), covered + seen, (y, settled.split), bias, tuple(cfg.bias), bias_values
    )
    notes = [f"{len(broken)} images could not be decoded and are left out"] if broken else []
    notes += [hidden.note] if hidden is not None else []
    return DataSet(
        name=root.name or str(root),
        source=source or str(root),
        inputs=inputs,
        y=y,
        classes=classes,
        splits=splits,
        bias=bias,
        bias_names=tuple(cfg.bias),
        bias_values=bias_values,
        columns=pl.DataFrame() if columns is None else columns,
        paths=full,
        fingerprint=fingerprint,
        former=former,
        **settled.fields(*notes),
        unreadable=tuple(sorted(broken.items())),
    )
