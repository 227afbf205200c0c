"""Held-out logits of a simple model: where a shortcut is used, its errors are the rows that lack the shortcut."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.methods._contract import Advice
from unskew.parts.opinion import reference_logits
from unskew.parts.trial import MOST, Trial, trial
from unskew.records import Table
from unskew.stats.readers import FOLDS, spread_folds
from unskew.training.finished import trained_method
from unskew.training.predict import predict
from unskew.training.run import train_once
from unskew.training.simple import linear_default, linear_features, pixel_features, trial_features


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
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(ids, held-out logits, features): logits are (n, C), or (n, L, 2) for several labels. A linear layer of the features where these
    can be had, else networks and no features."""
    found = None if model else linear_features(data, rows, workers, any_size=data.multi_label)
    if found is not None:
        index, x = found
        y = data.y[index]
        if not data.multi_label:
            return index, reference_logits(x, y, len(data.classes), seed=seed), x
        return index, torch.stack([reference_logits(x, column.long(), 2, seed=seed) for column in y.unbind(1)], 1), x
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
    return torch.cat(ids_of)[order], torch.cat(logits)[order], None


def _enough(rows: int, batch: int = 128, passes: int = 20) -> int:
    """Steps after which a small set has been seen often enough: longer training learns the rows by heart."""
    return max(20, passes * rows // batch)


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

    def without(what: str) -> Tensor:
        return pixel_features(data, index, workers, what)[1]

    # Where a whole network is trained, it can be trained on changed pictures; the features of a frozen one are those of plain ones.
    linear = linear_default(data)
    change = without if len(data.shape) in (3, 4) and not linear else None
    return trial(data, index, features, without=change, pretrained=linear and len(data.shape) == 3, seed=seed, workers=workers)


def advice(data: DataSet, tried: Trial | None) -> Advice:
    """The method that a trial supports, with its settings; plain training if it supports none."""
    linear = not data.multi_label and linear_default(data)
    plain = ("last_layer", {"weights": "plain"}) if linear else ("erm", {})  # where only a layer learns, its optimum is at hand
    if tried is None:
        return Advice(*plain, "there is nothing to try on this data", {})
    if not tried.supports:
        return Advice(*plain, tried.reason, tried.json())
    robust = ("last_layer", {"weights": tried.weights}) if linear else ("independence", {})
    if tried.removed:
        robust = ("neutralise", {"what": tried.removed})
    return Advice(*robust, tried.reason, tried.json())
