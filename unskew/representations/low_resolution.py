r"""low_resolution: the image at 8x8 pixels: layout and large shapes, no detail.

.. math::  \phi = \text{area average of } x \text{ on a grid of } s \times s

Source: tiny-image descriptors; Torralba, Fergus, Freeman, "80 million tiny images", PAMI 2008.
Differs: 8x8 instead of 32x32.
"""

from dataclasses import dataclass

from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.representations._contract import images_only, reduced

PIXELS, CONTENT, PIECES = True, True, True
VARIANTS: tuple[dict[str, str], ...] = ({},)


@dataclass(frozen=True)
class Config:
    side: int = 8  # pixels per side

    def __post_init__(self) -> None:
        if not 1 <= self.side <= 64:
            raise UserError(f"side={self.side}: must lie in 1..64")


def phrase(cfg: Config) -> str:
    return f"the image at {cfg.side}x{cfg.side} pixels"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data)


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    return reduced(x, cfg.side).flatten(1)
