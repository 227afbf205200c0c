r"""tone: brightness, contrast, gamma and saturation: how the levels of all pixels are distributed, without any place.

.. math::  \phi = \big(q_p(x),\ \mathrm{mean}\,x,\ \mathrm{std}\,x,\ \sqrt{P(x \le t)},\ \sqrt{P(x \ge 255 - t)},\ s,\ g,\ r\big)

q are nine percentiles of all channels, t eight distances from black and from white, s mean and spread of the saturation, g the share
of empty levels between the 1st and the 99th percentile, r the roughness of the histogram. A shift of a few levels is hidden in the
mean, as photographs differ by far more; it shows at the ends, where real scenes have black and white and shifted ones have not.

Source: the empty levels and peaks that tone curves leave, after Stamm and Liu, "Blind forensics of contrast enhancement", ICIP 2008.
Differs: numbers for a linear reader instead of a test against a threshold.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
SHARES = np.array([0.0005, 0.005, 0.02, 0.1, 0.5, 0.9, 0.98, 0.995, 0.9995])
ENDS = np.array([0, 1, 3, 5, 8, 12, 20, 32])


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "brightness, contrast and saturation"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 8)


def note(picture: Picture, cfg: Config) -> NDArray[np.int64]:
    """(512,) how often every level occurs, in all channels and as the colourfulness of a pixel."""
    levels = Image.fromarray(picture.channels.reshape(-1, picture.channels.shape[2])).histogram()
    return np.array(levels + Image.fromarray(picture.colourfulness).histogram())


def finish(counts: NDArray[np.int64], cfg: Config) -> Floats:
    of_level, of_colour = (part / part.sum(1, keepdims=True) for part in (counts[:, :256], counts[:, 256:]))
    below = of_level.cumsum(1)
    percentiles = (below[:, :, None] < SHARES).sum(1)
    dark, bright = np.sqrt(below[:, ENDS]), np.sqrt(np.maximum(1 - below[:, 254 - ENDS], 0))
    (mean, spread), (colourful, unequal) = _moments(of_level), _moments(of_colour)
    gaps, rough = [], []
    for share, first, last in zip(of_level, percentiles[:, 1], percentiles[:, -2], strict=True):
        inside = share[first : last + 1]
        gaps.append((inside == 0).mean() if len(inside) else 0.0)
        rough.append(np.abs(inside[1:-1] - (inside[:-2] + inside[2:]) / 2).sum() if len(inside) > 2 else 0.0)
    rest = np.stack([mean, spread, mean / (spread + 1), colourful, unequal, np.array(gaps), np.array(rough)], 1)
    return np.concatenate([percentiles, dark, bright, rest], 1).astype(np.float32)


def _moments(share: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(B,) mean and spread of levels with these shares (B, 256)."""
    levels = np.arange(256.0)
    mean = share @ levels
    return mean, np.sqrt(np.maximum((share * (levels - mean[:, None]) ** 2).sum(1), 0))


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers
