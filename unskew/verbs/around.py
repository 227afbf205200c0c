"""What surrounds the findings of an audit: leaks between splits by names and order, and where in the picture the class shows."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from unskew.core.matrix import Matrix, Rows
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.features import compute, spec
from unskew.measure.position_map import box_of, place_of, position_map
from unskew.parts.leaks import leaks

ROWS = 2000  # enough for a map
MOST_CLASSES = 12  # maps on a page


def leaks_of(data: DataSet, index: Tensor, features: Rows | None, seed: int) -> dict[str, Any] | None:
    """Leaks by the paths of these rows as a dict: findings, and notes on names that tell the class by design."""
    if not data.paths or data.multi_label:
        return None
    features = None if isinstance(features, Matrix) else features  # too many to read twice: nothing is said about flattery
    found = leaks([data.paths[i] for i in index.tolist()], data.y[index], data.classes, features=features, seed=seed)
    return {
        "findings": [{**_finite(dataclasses.asdict(one)), "flatters": _number(one.flatters)} for one in found.findings],
        "notes": list(found.notes),
    }


def apart_of(data: DataSet, found: Mapping[str, Any] | None) -> str:
    """The setting that keeps neighbouring files on one side of the splits; empty if their order tells nothing, or the splits are given."""
    if not data.carved or (data.reading is not None and data.reading.order):
        return ""
    return next((str(one["command"]) for one in (found or {}).get("findings", []) if one["kind"] == "order"), "")


def position_of(data: DataSet, index: Tensor, seed: int, workers: int) -> dict[str, Any] | None:
    """A map per class: the area under the curve of every tile, row by row, with the box around the best ones in words."""
    one = spec("position")
    if data.multi_label or not data.has_inputs or one.missing(data):
        return None
    some = index[torch.randperm(len(index), generator=stream(seed, "position"))[:ROWS]].sort().values
    ids, features = compute(data, [one], some, workers=workers)
    y = data.y[ids]
    if int((y.bincount(minlength=len(data.classes)) > 1).sum()) < 2:
        return None
    tiles = features[one.name].view(len(ids), 64, -1)
    found = position_map(tiles, y, seed=seed)
    maps = []
    for c in torch.unique(y).tolist()[:MOST_CLASSES]:
        area, level = found.area[:, c], float(found.level[c])
        box = box_of(area, level, 8)
        maps.append(
            {"class": data.classes[c], "area": [_number(v) for v in area.tolist()], "level": _number(level),
             "box": box, "where": "" if box is None else place_of(box)}
        )  # fmt: skip
    return {"grid": 8, "rows": len(ids), "maps": maps}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _number(value) if isinstance(value, float) else value for key, value in values.items()}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
