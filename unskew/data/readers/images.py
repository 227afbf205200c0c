"""Image files and their columns as a DataSet: in memory if they fit, else streamed."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.duplicates import of_files
from unskew.data.hide import hiding
from unskew.data.manifest import Facts, facts_of, glimpse, labels_of
from unskew.data.readers.files import Files, check_names, choose_side, read_all, too_many_bad
from unskew.data.readers.walking import Found, measured
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle
from unskew.data.texts import Texts


def as_built(folder: Path, cfg: DataConfig) -> DataConfig:
    """The settings for a folder that may be `unskew data`'s: such a set has the splits that it is meant to have."""
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return cfg
    ours = isinstance(card, dict) and {"fingerprint", "rows", "classes"} <= set(card)
    return dataclasses.replace(cfg, holdout=0.0, duplicates=False) if ours else cfg


def fingerprints(
    facts: tuple[object, ...],
    files: Iterable[bytes],
    labels: Sequence[Tensor],
    bias: Tensor,
    bias_names: tuple[str, ...],
    bias_values: tuple[tuple[str, ...], ...],
) -> tuple[str, str]:
    """Fingerprints of rows in files: without their bias columns, and with them, as in version 0.1."""
    kinds = (((), (), bias[:, :0]), (bias_names, bias_values, bias))
    digests = [hashlib.sha256(repr((*facts, names, values)).encode("utf-8", "surrogateescape")) for names, values, _ in kinds]
    for piece in files:
        for digest in digests:
            digest.update(piece)
    for digest, (_, _, codes) in zip(digests, kinds, strict=True):
        for part in (*labels, codes):
            digest.update(part.contiguous().numpy().tobytes())
    return digests[0].hexdigest()[:32], digests[1].hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What a source says of its rows, apart from their pictures."""

    y: Tensor
    classes: tuple[str, ...]
    split: Tensor
    splits: tuple[str, ...]
    bias: Tensor
    bias_names: tuple[str, ...] = ()
    bias_values: tuple[tuple[str, ...], ...] = ()

    def frame(self) -> pl.DataFrame:
        """Class, split and bias columns by name, for the manifest."""
        biases = zip(self.bias_names, self.bias.numpy().T, self.bias_values, strict=True)
        y = self.y.numpy() if self.y.ndim == 1 else None
        return labels_of(y, self.classes, self.split.numpy(), self.splits, list(biases))


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
    found: Found | None = None,
) -> DataSet:
    """A data set of image files. `paths` are relative to `root`, one per row; `source` is what the user named, if not `root`.

    `found` has their sizes and times, if they were listed a moment ago.
    """
    where = source or str(root)
    names = Texts.of(paths)
    check_names(names, where)
    check_names(classes, where)
    full = below(root, names)
    bias = torch.zeros(len(y), 0, dtype=torch.long) if bias is None else bias
    labels = Labels(
        y=y, classes=classes, split=split, splits=splits, bias=bias, bias_names=tuple(cfg.bias), bias_values=bias_values
    )  # fmt: skip
    known = measured(full) if found is None else found
    facts = facts_of(os.path.abspath(where), names, full, known.size, known.mtime, labels.frame())
    return stored_set(root.name or str(root), where, full, names, facts, labels, cfg, columns=columns, root=root)


def below(root: Path, names: Texts) -> Texts:
    """The paths of these names, as `os.path.join` makes them: one that is absolute stays as it is."""
    if names.any_begins("/") if os.sep == "/" else any(os.path.isabs(name) for name in names):
        return Texts.of(os.path.join(root, name) for name in names)
    return Texts.of(names, before=os.path.join(root, ""))


def stored_set(
    name: str,
    where: str,
    stored: Texts,
    names: Texts,
    facts: Facts,
    labels: Labels,
    cfg: DataConfig,
    *,
    columns: pl.DataFrame | None = None,
    root: Path | None = None,
    blocks: Tensor | None = None,
) -> DataSet:
    """A data set of pictures wherever they are stored: as files, inside shards, in a bucket."""
    y, rows = labels.y, len(names)
    broken = facts.broken(cfg.max_pixels)
    too_many_bad(broken, stored, rows, cfg.max_bad)
    unopened = next((k for k in broken if not facts.hash[k].any()), None)
    if unopened is not None:
        glimpse(stored[unopened])  # raises: a disk that cannot be read is no damaged picture
    side = choose_side(facts, cfg.size, broken)
    hidden = hiding(pl.DataFrame() if columns is None else columns, cfg, where, root)
    files = Files(stored, side, hidden, max_pixels=cfg.max_pixels)
    gigabytes = rows * 3 * side[0] * side[1] / 1e9
    inputs: Inputs = files
    if cfg.mode == "memory" or (cfg.mode == "auto" and gigabytes <= cfg.memory):
        with progress.bar("reading images", rows) as advance:
            x, broken = read_all(files, broken, advance)
        too_many_bad(broken, stored, rows, cfg.max_bad)
        readable = torch.ones(rows, dtype=torch.bool)
        readable[list(broken)] = False
        whole = torch.from_numpy(facts.of_size(side)) if hidden is None else None
        inputs = Memory(x, readable if broken else None, whole=whole)
    settled = settle(
        y, labels.split, cfg, where, columns=columns, paths=names,
        twins=lambda: of_files(stored, facts.content(names), most=cfg.max_pixels),
    )  # fmt: skip
    covered = b"" if hidden is None else repr((hidden.how, hidden.radius, hidden.covers)).encode("utf-8", "surrogateescape")
    fingerprint, former = fingerprints(
        (labels.classes, labels.splits, side), chain([covered], facts.content(names)), (y, settled.split),
        labels.bias, labels.bias_names, labels.bias_values,
    )  # fmt: skip
    notes = [f"{len(broken)} images could not be decoded and are left out"] if broken else []
    notes += [hidden.note] if hidden is not None else []
    return DataSet(
        name=name,
        source=where,
        inputs=inputs,
        y=y,
        classes=labels.classes,
        splits=labels.splits,
        bias=labels.bias,
        bias_names=labels.bias_names,
        bias_values=labels.bias_values,
        columns=pl.DataFrame() if columns is None else columns,
        paths=stored,
        blocks=blocks,
        fingerprint=fingerprint,
        former=former,
        **settled.fields(*notes),
        unreadable=tuple(sorted(broken.items())),
    )
