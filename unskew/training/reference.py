"""Held-out logits of a simple model: where a shortcut is used, its errors are the rows that lack the shortcut."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.methods._contract import Advice, method_class
from unskew.models._contract import maker
from unskew.parts.opinion import reference_logits
from unskew.parts.trial import MOST, Trial, trial
from unskew.records import Table
from unskew.stats.readers import FOLDS, spread_folds
from unskew.training.defaults import choose, weights_at_hand
from unskew.training.finished import trained_method
from unskew.training.frozen import is_frozen, with_features
from unskew.training.predict import predict
from unskew.training.run import train_once


def linear_features(data: DataSet, rows: Tensor, workers: int, any_size: bool = False) -> tuple[Tensor, Tensor] | None:
    """(ids, standardised features) that a linear layer can be asked about: of a frozen pretrained network, or the vectors.

    None where the default training learns a whole network, unless `any_size` asks for pretrained features all the same.
    """
    method = method_class("last_layer" if any_size else "erm")
    chosen = choose(data, method, method.Config(), "auto", 0, weighted=True).model
    if chosen == "frozen":
        network = maker("frozen", {}, data.shape, len(data.classes))()
        assert is_frozen(network)
        x, there = with_features(data, network, rows, workers).inputs.rows(rows)
    elif len(data.shape) == 1:
        x, there = data.inputs.rows(rows)
    else:
        return None
    x = x[there].float()
    return rows[there], (x - x.mean(0)) / x.std(0).clamp(min=1e-6)


def reference(
    data: DataSet,
    rows: Tensor,
    out: Path,
    *,
    steps: int,
    folds: int,
    seed: int,
    device: str,
    model: str,
    settings: Mapping[str, Any],
    workers: int,
) -> tuple[Tensor, Tensor]:
    """(ids, held-out logits): (n, C), or (n, L, 2) for several labels. A linear layer where features can be had, else networks."""
    found = None if model else linear_features(data, rows, workers, any_size=data.multi_label)
    if found is not None:
        index, x = found
        y = data.y[index]
        if not data.multi_label:
            return index, reference_logits(x, y, len(data.classes), seed=seed)
        return index, torch.stack([reference_logits(x, column.long(), 2, seed=seed) for column in y.unbind(1)], 1)
    if data.multi_label:
        raise UserError("several labels per row need features for the reference; leave out --model")
    y, fold = data.y[rows], spread_folds(data.y[rows], folds, seed)
    ids_of, logits = [], []
    for k in range(folds):
        inside = pl.DataFrame({"index": rows.numpy(), "weight": (fold != k).double().numpy()})
        run = train_once(
            data, "gce", model=model, out=out.with_name(f"{out.stem}-model{k + 1}"), seed=seed + k, device=device,
            weights=Table(inside, {"name": "reference", "fingerprint": data.fingerprint, "use": "keep"}),
            settings={**settings, "train.steps": min(steps, _enough(len(y)))}, command=f"part {k + 1} of the reference of {out.name}",
        )  # fmt: skip
        ids, z = predict(trained_method(run), data, rows[fold == k], workers=workers)
        ids_of.append(ids)
        logits.append(z)
    order = torch.cat(ids_of).argsort()
    return torch.cat(ids_of)[order], torch.cat(logits)[order]


def _enough(rows: int, batch: int = 128, passes: int = 20) -> int:
    """Steps after which a small set has been seen often enough: longer training learns the rows by heart."""
    return max(20, passes * rows // batch)


def trial_features(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, Tensor]:
    """(ids, standardised features) for a quick trial: those of the default training, or the pixels of small images and clips."""
    return linear_features(data, rows, workers) or pixel_features(data, rows, workers)


def pixel_features(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, Tensor]:
    """(ids, standardised features): the pixels of images and clips, shrunk to a few."""
    index, parts = [], []
    for ids, x in rows_in_order(data, rows, 512, workers=workers):
        index.append(ids)
        flat = x.flatten(0, 1) if x.ndim == 5 else x
        side = min(16 if x.ndim == 4 else 8, *x.shape[-2:])
        parts.append(F.adaptive_avg_pool2d(flat, side).reshape(len(ids), -1))
    pixels = torch.cat(parts)
    return torch.cat(index), (pixels - pixels.mean(0)) / pixels.std(0).clamp(min=1e-3)


def slice_features(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, Tensor, str]:
    """(ids, standardised features, what they are in words) that slices are looked for in.

    Those of a pretrained network for photographs, and at any size if its weights are at hand; else the pixels, or the vectors.
    """
    if len(data.shape) == 1:
        return (*trial_features(data, rows, workers), f"vectors of {data.shape[0]} numbers")
    photographs = len(data.shape) == 3 and linear_default(data)
    if not photographs and not (weights_at_hand() and data.shape[-3] in (1, 3)):
        return (*pixel_features(data, rows, workers), "pixels, shrunk")
    network = maker("frozen", {}, data.shape, len(data.classes))()
    assert is_frozen(network)
    # The training rows apart from the others: a trial of remedies has the same ones in the cache.
    train = torch.isin(rows, data.rows("train")) if data.has("train") else torch.zeros(len(rows), dtype=torch.bool)
    index, blocks = [], []
    for part in (rows[train], rows[~train]):
        if len(part):
            x, there = with_features(data, network, part, workers).inputs.rows(part)
            index.append(part[there])
            blocks.append(x[there].float())
    order = torch.cat(index).argsort()
    x = torch.cat(blocks)[order]
    return torch.cat(index)[order], (x - x.mean(0)) / x.std(0).clamp(min=1e-6), f"{network.cfg.backbone} at {network.side} pixels"


def quick_trial(data: DataSet, rows: Tensor, seed: int, workers: int) -> Trial | None:
    """A trial on at most MOST rows, each class in its share; None where there is nothing to try."""
    if data.multi_label or not data.has_inputs:
        return None
    y = data.y[rows]
    common = y.bincount(minlength=len(data.classes)) >= 2 * FOLDS
    rows = rows[common[y]]
    if int(common.sum()) < len(data.classes) or not len(rows):
        return None  # a class of a few rows leaves nothing to hold out
    some = rows[torch.randperm(len(rows), generator=stream(seed, "trial"))[:MOST]].sort().values
    index, features = trial_features(data, some, workers)
    return trial(data, index, features, seed=seed, workers=workers)


def advice(data: DataSet, tried: Trial | None) -> Advice:
    """The method that a trial supports, with its settings; plain training if it supports none."""
    linear = not data.multi_label and linear_default(data)
    plain = ("last_layer", {"weights": "plain"}) if linear else ("erm", {})  # where only a layer learns, its optimum is at hand
    if tried is None:
        return Advice(*plain, "there is nothing to try on this data", {})
    if not tried.supports:
        return Advice(*plain, tried.reason, tried.json())
    robust = ("last_layer", {"weights": "opinion"}) if linear else ("independence", {})
    return Advice(*robust, tried.reason, tried.json())


def linear_default(data: DataSet) -> bool:
    """Whether the default training of this data learns only a linear layer, or could: photographs and vectors."""
    erm = method_class("erm")
    return len(data.shape) == 1 or choose(data, erm, erm.Config(), "auto", 0, weighted=True).model == "frozen"
