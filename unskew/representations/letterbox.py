r"""letterbox: bars, frames and margins: lines along the four edges that are all of one level.

.. math::  \phi_e = \Big(\frac{k_e}{\text{side}},\ [k_e > 0],\ \log \sigma_e,\ \mu_e,\ (\mu_e - 128)^2\Big), \qquad e \in
           \{\text{top, bottom, left, right}\}

k is the number of lines from the edge inwards whose spread is below 5 levels and whose mean is within 5 of the outermost; sigma and
mu are spread and mean of the outermost line.

Source: made here.
Differs: nothing.
"""

from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
FLAT = 5.0  # levels


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "bars or a frame at the edges"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def bar(spread: Floats, mean: Floats) -> int:
    """The number of lines, from the first on, that are flat and of the first one's level; at most half of them.

    >>> bar(np.array([1, 2, 9, 1.0]), np.array([0, 1, 2, 0.0]))
    2
    """
    plain = (spread < FLAT) & (np.abs(mean - mean[0]) < FLAT)
    return int(min(plain.argmin() if not plain.all() else len(plain), len(plain) // 2))


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.whole
    numbers: list[float] = []
    for axis in (1, 0):
        spread, mean = grey.std(axis), grey.mean(axis)
        for way in (slice(None), slice(None, None, -1)):
            lines = bar(spread[way], mean[way])
            level = float(mean[way][0])
            numbers += [lines / len(mean), float(lines > 0), float(np.log(spread[way][0] + 1)), level, (level - 128) ** 2 / 128]
    return np.array(numbers, dtype=np.float32)
