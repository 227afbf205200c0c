r"""position: the picture tile by tile, for a map of where in it the class can be read.

.. math::  \phi_t = (\text{mean colour of the four quarters of tile } t,\ \log \overline{|\nabla x|}_t)

64 tiles, 13 numbers each. An audit does not measure it as a whole; `unskew.measure.position_map` reads every tile by itself.

Source: made here.
Differs: nothing.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import images_only, reduced

PIXELS, CONTENT, PIECES, CACHED, PROBE = True, True, True, False, True
VARIANTS: tuple[dict[str, str], ...] = ()
GRID = 8


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "tiles of the picture"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= 2 * GRID else f"images are smaller than {2 * GRID} pixels")


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    """(B, 64, D) of images (B, C, H, W), tiles row by row."""
    quarters = reduced(x, 2 * GRID)  # (B, C, 16, 16)
    colours = F.unfold(quarters, 2, stride=2).transpose(1, 2)  # (B, 64, 4 C)
    steps = (x[:, :, 1:, :-1] - x[:, :, :-1, :-1]).abs_()
    steps += (x[:, :, :-1, 1:] - x[:, :, :-1, :-1]).abs_()
    energy = F.adaptive_avg_pool2d(steps.sum(1, keepdim=True), GRID).flatten(2).transpose(1, 2) / x.shape[1]
    return torch.cat([colours, (energy + 0.01).log()], 2)
