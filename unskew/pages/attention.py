r"""Where a network looks: Grad-CAM over the pictures of a gallery.

.. math::
    \alpha_k = \frac{1}{HW} \sum_{ij} \frac{\partial z_c}{\partial A^k_{ij}}, \qquad
    L = \max\Big(0, \sum_k \alpha_k A^k\Big)

A is the last layer with spatial positions, z_c the logit of the predicted class.

Source: Selvaraju et al., "Grad-CAM", ICCV 2017; class activation maps in Bahng et al., ICML 2020, and in the PGD
submission, ICLR 2022.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.loader import rows_in_order
from unskew.data.pictures import picture
from unskew.models._contract import Adapter, Model
from unskew.pages.samples import SIDE
from unskew.records import Evaluation, Run
from unskew.training.finished import trained_method

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


def looks(run: Run, found: Evaluation, rows: Sequence[int], most: int = 0) -> tuple[str, dict[int, str]]:
    """The layer that was looked at, and pictures of these rows with the map laid over them; nothing if there is none to show."""
    data = found.data
    if not rows or len(data.shape) != 3 or data.multi_label:
        return "", {}
    method = trained_method(run)
    model = getattr(method, "model", None)
    if not isinstance(model, Model) or isinstance(model, Adapter):
        return "", {}
    shown = torch.tensor(sorted(set(rows)))
    index, x = next(rows_in_order(data, shown, len(shown), dtype=next(model.parameters()).dtype))
    raw = data.inputs.rows(index)[0]
    logits = method.predict(x)
    # Where a method changes its input first, a map over the picture would mislead.
    if raw.dtype != torch.uint8 or not torch.allclose(logits, model(x), atol=1e-4):
        return "", {}
    layer = last_with_places(model, x)
    if not layer:
        return "", {}
    heat = activation_map(model, x, layer, logits.argmax(1))
    return layer, {i: picture(overlay(raw[k], heat[k]), SIDE, most) for k, i in enumerate(index.tolist())}


def overlay(pixels: Tensor, seen: Tensor) -> Tensor:
    """The picture in grey, tinted red where the map is high. Bytes (C, H, W) and a map (h, w) give bytes (3, H, W)."""
    grey = pixels.float().mean(0, keepdim=True) / 255
    large = F.interpolate(seen[None, None].float(), size=grey.shape[1:], mode="bilinear", align_corners=False)[0]
    warm = torch.tensor(WARM)[:, None, None]
    mixed = (1 - 0.75 * large) * (0.35 + 0.65 * grey) + 0.75 * large * warm
    return (255 * mixed).round().clamp(0, 255).to(torch.uint8)
