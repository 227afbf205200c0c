r"""Where a network looks: Grad-CAM, for aligned and conflicting samples side by side.

.. math::
    \alpha_k = \frac{1}{HW} \sum_{ij} \frac{\partial z_c}{\partial A^k_{ij}}, \qquad
    L = \max\Big(0, \sum_k \alpha_k A^k\Big)

A is the last layer with spatial positions, z_c the logit of the predicted class.

Source: Selvaraju et al., "Grad-CAM", ICCV 2017; class activation maps in Bahng et al., ICML 2020, and in the PGD
submission, ICLR 2022.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.data.pictures import picture
from unskew.models._contract import Adapter, Model
from unskew.records import Evaluation, Run
from unskew.training.finished import trained_method

PICTURES = 6  # of each kind
WARM = (0.87, 0.43, 0.34)


def activation_map(model: Model, x: Tensor, layer: str, target: Tensor) -> Tensor:
    """(n, h, w) at the layer's resolution, scaled to [0, 1] in each image; 0 everywhere if nothing supports the class."""
    with torch.enable_grad():
        maps = model.features(x, layer).detach().requires_grad_(True)
        logit = model.after(maps, layer).gather(1, target[:, None]).sum()
        (gradient,) = torch.autograd.grad(logit, maps)
    heat = (gradient.mean((2, 3), keepdim=True) * maps).sum(1).clamp(min=0).detach()
    return heat / heat.amax((1, 2), keepdim=True).clamp(min=1e-12)


def last_with_places(model: Model, x: Tensor) -> str:
    """The last layer whose output is a map with more than one position; empty if there is none."""
    last = ""
    with torch.no_grad():
        for layer in model.layers:
            h = model.features(x[:1], layer)
            if h.ndim == 4 and min(h.shape[2:]) > 1:
                last = layer
    return last


def looks(run: Run, found: Evaluation) -> dict[str, Any]:
    """Pictures of samples with the map laid over them; empty if there is nothing to show."""
    data = found.data
    if len(data.shape) != 3 or data.multi_label or not data.bias_names:
        return {}
    method = trained_method(run)
    model = getattr(method, "model", None)
    if not isinstance(model, Model) or isinstance(model, Adapter):
        return {}
    chosen = {kind: rows for kind, rows in _samples(data, found.rows).items() if len(rows)}
    if not chosen:
        return {}
    shown: dict[str, Any] = {}
    layer = ""
    for kind, rows in chosen.items():
        index, x = next(rows_in_order(data, rows, len(rows), dtype=next(model.parameters()).dtype))
        logits = method.predict(x)
        if not layer:
            if not torch.allclose(logits, model(x), atol=1e-4):
                return {}  # the method changes its input first: a map over the picture would mislead
            layer = last_with_places(model, x)
            if not layer:
                return {}
        guess = logits.argmax(1)
        heat = activation_map(model, x, layer, guess)
        raw = data.inputs.rows(index)[0]
        shown[kind] = [
            {
                "picture": picture(raw[k]),
                "map": picture(overlay(raw[k], heat[k])),
                "class": data.classes[int(data.y[index[k]])],
                "said": data.classes[int(guess[k])],
            }
            for k in range(len(index))
        ]
    return {"layer": layer, **shown}


def overlay(pixels: Tensor, seen: Tensor) -> Tensor:
    """The picture in grey, tinted red where the map is high. Bytes (C, H, W) and a map (h, w) give bytes (3, H, W)."""
    grey = pixels.float().mean(0, keepdim=True) / 255
    large = F.interpolate(seen[None, None].float(), size=grey.shape[1:], mode="bilinear", align_corners=False)[0]
    warm = torch.tensor(WARM)[:, None, None]
    mixed = (1 - 0.75 * large) * (0.35 + 0.65 * grey) + 0.75 * large * warm
    return (255 * mixed).round().clamp(0, 255).to(torch.uint8)


def _samples(data: DataSet, rows: Tensor) -> dict[str, Tensor]:
    """Aligned and conflicting judged rows, by the first bias column, spread over the split."""
    pairs = data.only_bias(data.bias_names[:1]).alignment()
    if pairs is None or data.inputs.rows(rows[:1])[0].dtype != torch.uint8:
        return {}
    aligned, conflicting = pairs.of_rows(data.y[rows], data.bias[rows, :1])

    def some(mask: Tensor) -> Tensor:
        here = rows[mask]
        return here[torch.linspace(0, len(here) - 1, min(PICTURES, len(here))).long()] if len(here) else here

    return {"aligned": some(aligned), "conflicting": some(conflicting)}
