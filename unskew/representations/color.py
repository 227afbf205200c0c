r"""color: the colours of an image, without any shape.

.. math::  \phi_\text{max} = \max_p x_p, \qquad \phi_\text{mean} = (\mathrm{mean}_p x_p,\ \mathrm{std}_p x_p), \qquad
           \phi_\text{histogram} = \text{share of pixels in each of } 4^3 \text{ colour boxes}

From a short side of 128 pixels on, the histogram counts every second pixel along each side.

Source: Li and Vasconcelos, "REPAIR", CVPR 2019 (released code: the per-channel maximum over pixels).
Differs: `mean` and `histogram` are ours; the paper says only "color".
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import images_only

PIXELS, CONTENT, PIECES = True, False, True
VARIANTS = ({"kind": "max"}, {"kind": "mean"}, {"kind": "histogram"})
BINS = 4
LARGE = 128  # pixels of the short side from which the histogram counts every second pixel along each side


@dataclass(frozen=True)
class Config:
    kind: Literal["max", "mean", "histogram"] = "max"  # maximum; mean and deviation; or 4x4x4 histogram


def phrase(cfg: Config) -> str:
    return {"max": "the brightest colour", "mean": "the mean colour", "histogram": "the colour histogram"}[cfg.kind]


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data)


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    flat = x.flatten(2)  # (B, C, P)
    if cfg.kind == "max":
        return flat.amax(2)
    if cfg.kind == "mean":
        mean = flat.mean(2, keepdim=True)
        spread = (
            torch.linalg.vector_norm(flat - mean, dim=2) / max(1, flat.shape[2] - 1) ** 0.5
        )  # torch's std takes thrice as long
        return torch.cat([mean[:, :, 0], spread], 1)
    by = 1 if min(x.shape[2:]) < LARGE else 2
    boxes = (x[:, :, ::by, ::by].flatten(2) * BINS).to(torch.uint8).clamp_(max=BINS - 1)
    code = boxes[:, 0].int()
    for channel in boxes.unbind(1)[1:]:
        code = code * BINS + channel
    size = BINS ** x.shape[1]
    counts = torch.stack([row.bincount(minlength=size) for row in code])  # several times as fast as adding at places
    return (counts / code.shape[1]).sqrt()  # the square root spreads small shares, as a few pixels may be the shortcut
