r"""crop: only the border of an image (mostly background), or only its centre (mostly the object).

.. math::  \phi = \text{cells of a } 16 \times 16 \text{ area average: the outer two rings, or the inner } 8 \times 8

Source: the background-only images of Xiao, Engstrom, Ilyas, Madry, "Noise or signal", ICLR 2021, without masks.
Differs: position replaces the mask, which a user does not have.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import images_only, reduced

PIXELS, CONTENT, PIECES = True, False, True
VARIANTS = ({"where": "border"}, {"where": "center"})
GRID, RING = 16, 2


@dataclass(frozen=True)
class Config:
    where: Literal["border", "center"] = "border"  # the outer two rings, or the inner 8x8 cells


def phrase(cfg: Config) -> str:
    return "the border of the image" if cfg.where == "border" else "the centre of the image"


def content(cfg: Config) -> bool:
    return cfg.where == "center"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= GRID else f"images are smaller than {GRID} pixels")


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    small = reduced(x, GRID)
    if cfg.where == "center":
        return small[:, :, 4:12, 4:12].flatten(1)
    ring = torch.ones(GRID, GRID, dtype=torch.bool)
    ring[RING:-RING, RING:-RING] = False
    return small[:, :, ring].flatten(1)
