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
FEW = 8  # lines at an edge that are always looked at


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "bars or a frame at the edges"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def bar(spread: Floats, mean: Floats) -> int:
    """The number of lines, from the first on, that are flat and of the first one's level.

    >>> bar(np.array([1, 2, 9, 1.0]), np.array([0, 1, 2, 0.0]))
    2
    """
    plain = (spread < FLAT) & (np.abs(mean - mean[0]) < FLAT)
    return int(plain.argmin()) if not plain.all() else len(plain)


def lines(grey: Floats) -> tuple[Floats, Floats]:
    """Spread and mean of the rows from the first on, as far as a bar may reach: a few more are taken while all are flat."""
    most = max(1, len(grey) // 2 + 1)
    taken = min(FEW, most)
    while True:
        some = grey[:taken]
        # Sums, as `mean` spends more time on what these do not need.
        mean = np.add.reduce(some, 1) / np.float32(some.shape[1])
        away = some - mean[:, None]
        away *= away
        spread = np.sqrt(np.add.reduce(away, 1) / np.float32(some.shape[1]))
        if taken == most or bool((spread >= FLAT).any()):
            return spread, mean
        taken = min(4 * taken, most)


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.whole
    numbers: list[float] = []
    for way in (grey, grey[::-1], grey.T, grey.T[::-1]):
        spread, mean = lines(way)
        plain = min(bar(spread, mean), len(way) // 2)
        level = float(mean[0])
        numbers += [plain / len(way), float(plain > 0), float(np.log(spread[0] + 1)), level, (level - 128) ** 2 / 128]
    return np.array(numbers, dtype=np.float32)
