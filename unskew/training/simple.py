"""Features that a simple model reads: of a frozen pretrained network, vectors, or small pictures as they are."""

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.features import compute
from unskew.measure.slices import leading_axes
from unskew.methods._contract import method_class
from unskew.models._contract import maker
from unskew.stats.removal import without
from unskew.training.defaults import choose, weights_at_hand
from unskew.training.frozen import inside, is_frozen, representation_of, with_features


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


def trial_features(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, Tensor]:
    """(ids, standardised features) for a quick trial: those of the default training, or the pixels of small images and clips."""
    return linear_features(data, rows, workers) or pixel_features(data, rows, workers)


def pixel_features(data: DataSet, rows: Tensor, workers: int, removed: str = "") -> tuple[Tensor, Tensor]:
    """(ids, standardised features): the pixels of images and clips, shrunk to a few; with something taken out (stats.removal)."""
    index, parts = [], []
    alter = (lambda x, ids: without(x, removed)) if removed else None
    for ids, x in rows_in_order(data, rows, 512, workers=workers, alter=alter):
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
    if not _pretrained(data):
        return (*pixel_features(data, rows, workers), "pixels, shrunk")
    network = maker("frozen", {}, data.shape, len(data.classes))()
    assert is_frozen(network)
    x, there = with_features(data, network, rows, workers).inputs.rows(rows)
    x = x[there].float()
    return rows[there], (x - x.mean(0)) / x.std(0).clamp(min=1e-6), f"{network.cfg.backbone} at {network.side} pixels"


def part_features(data: DataSet, rows: Tensor, box: tuple[float, float, float, float], workers: int) -> Tensor:
    """(n, D) features of a box in pictures that can be read: its pixels, shrunk, and leading axes of pretrained features, if those are
    what slices of the whole are looked for in.

    The network sees the part at half the size at which it sees the whole, at least 64 pixels: a quarter of the work.
    """
    parts = []
    for _, x in rows_in_order(data, rows, 512, workers=workers):
        part = inside(x, box)
        parts.append(F.adaptive_avg_pool2d(part, min(8, *part.shape[-2:])).flatten(1))
    pixels = torch.cat(parts)
    if not _pretrained(data):
        return pixels
    whole = maker("frozen", {}, data.shape, len(data.classes))()
    assert is_frozen(whole)
    network = maker("frozen", {"size": str(max(64, whole.side // 2))}, data.shape, len(data.classes))()
    assert is_frozen(network)
    _, blocks = compute(data, [representation_of(network, box)], rows, workers=workers)
    x = blocks["layer"]
    return torch.cat([leading_axes((x - x.mean(0)) / x.std(0).clamp(min=1e-6), 64).float(), pixels], 1)


def _pretrained(data: DataSet) -> bool:
    """Whether slices of these pictures or clips are looked for in features of a pretrained network."""
    photographs = len(data.shape) == 3 and linear_default(data)
    return photographs or (weights_at_hand() and data.shape[-3] in (1, 3))


def linear_default(data: DataSet) -> bool:
    """Whether the default training of this data learns only a linear layer, or could: photographs and vectors."""
    erm = method_class("erm")
    return len(data.shape) == 1 or choose(data, erm, erm.Config(), "auto", 0, weighted=True).model == "frozen"
