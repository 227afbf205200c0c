"""The rows of a real data set in its official layout, as a DataSet of images or clips."""

import dataclasses
from collections.abc import Sequence

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import SPLITS, DataSet
from unskew.data.readers.clips import clip_set
from unskew.data.readers.images import image_set
from unskew.data.readers.listing import Listing, Row
from unskew.data.reading import DataConfig

FRAMES = 8  # per clip, as in ReBias


def data_set(listing: Listing, cfg: DataConfig) -> DataSet:
    """The rows as a data set of images or clips. Raises if a listed file is missing; a missing split is taken from training."""
    rows, root = listing.rows, listing.root
    if not rows:
        raise UserError(f"{listing.name}: no rows left in {root}")
    absent = [r.file for r in rows if not (root / r.file).exists()]
    if absent:
        raise UserError(
            f"{listing.name}: {len(absent)} of {len(rows)} files named in the lists are not in {root}; the first is {absent[0]}"
        )
    y = _labels(rows, listing.classes)
    splits = (*SPLITS, *sorted({r.split for r in rows} - set(SPLITS)))
    split = torch.tensor([splits.index(r.split) for r in rows])
    # A published set with several labels has the splits it is meant to have; near-duplicates are its authors' choice.
    cfg = dataclasses.replace(cfg, duplicates=False, holdout=cfg.holdout if y.ndim == 1 else 0.0)
    names = tuple(listing.bias_values)
    codes = [[listing.bias_values[n].index(r.bias[n]) if n in r.bias else -1 for n in names] for r in rows]
    bias = torch.tensor(codes, dtype=torch.long).view(len(rows), len(names))
    build = clip_set if listing.clips else image_set
    cfg = dataclasses.replace(cfg, frames=cfg.frames or FRAMES) if listing.clips else cfg
    data = build(
        root, [r.file for r in rows], y, listing.classes, split, splits, dataclasses.replace(cfg, bias=names),
        bias=bias, bias_values=tuple(listing.bias_values.values()),
        columns=pl.DataFrame([r.columns for r in rows]) if rows[0].columns else None,
    )  # fmt: skip
    return dataclasses.replace(data, name=listing.name, notes=(*listing.notes, *data.notes))


def _labels(rows: Sequence[Row], classes: tuple[str, ...]) -> Tensor:
    place = {name: k for k, name in enumerate(classes)}
    if isinstance(rows[0].label, str):
        return torch.tensor([place[r.label] for r in rows])
    y = torch.zeros(len(rows), len(classes))
    for k, row in enumerate(rows):
        y[k, [place[name] for name in row.label]] = 1
    return y
