r"""dimensions: width and height of the picture in its file, in pixels, and their ratio.

.. math::  \phi = \big(\log w,\ \log h,\ \log\tfrac wh,\ |\log\tfrac wh|,\ [w > h],\ [w = h]\big)

Source: made here.
Differs: nothing.
"""

from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import files_only

PIXELS, CONTENT, FOREIGN, PROBE = True, False, True, True
VARIANTS: tuple[dict[str, str], ...] = ({},)


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the picture's size in pixels and its aspect"


def applies(data: DataSet, cfg: Config) -> str:
    return files_only(data)


def look(picture: Picture, cfg: Config) -> Floats:
    width, height = picture.size
    w, h = np.log(width), np.log(height)
    return np.array([w, h, w - h, abs(w - h), float(width > height), float(width == height)], dtype=np.float32)
