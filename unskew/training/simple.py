"""Features that a simple model reads: of a frozen pretrained network, vectors, or small pictures as they are."""

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.methods._contract import method_class
from unskew.models._contract import maker
from unskew.training.defaults import choose
from unskew.training.frozen import is_frozen, with_features


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
    found = linear_features(data, rows, workers)
    if found is not None:
        return found
    index, parts = [], []
    for ids, x in rows_in_order(data, rows, 512, workers=workers):
        index.append(ids)
        flat = x.flatten(0, 1) if x.ndim == 5 else x
        side = min(16 if x.ndim == 4 else 8, *x.shape[-2:])
        parts.append(F.adaptive_avg_pool2d(flat, side).reshape(len(ids), -1))
    pixels = torch.cat(parts)
    return torch.cat(index), (pixels - pixels.mean(0)) / pixels.std(0).clamp(min=1e-3)
