r"""marks: what sits in the corners or along the edges at full resolution: stamps, rulers, logos, watermarks, marks of a few pixels.

.. math::  \phi_\text{corners} = \big(\mu,\ \log\sigma,\ c,\ |\mu - \mu_\text{around}|,\ e^{-\sigma/4}\, [\mu \in \text{bin } k]\big),
           \qquad \phi_\text{edges} = \big(\mu,\ \log\overline{|\nabla x|},\ \log c\big)_\text{tile} - \mathrm{median}_\text{tiles}

for squares of 4 and 12 pixels in each corner, and for the 28 outer tiles of an 8 x 8 grid; mu, sigma and c are mean, spread and
colourfulness. The bins (16 levels each) let a linear reader know a mark of medium grey from brighter and darker corners; flat squares
count most.

Source: made here.
Differs: nothing.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture, median, pooling
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS = ({"where": "corners"}, {"where": "edges"})
GRID = 8
_EDGE = np.pad(np.zeros((GRID - 2, GRID - 2), dtype=bool), 1, constant_values=True)


@dataclass(frozen=True)
class Config:
    where: Literal["corners", "edges"] = "corners"  # squares of 4 and 12 pixels in the corners, or tiles along the edges


def phrase(cfg: Config) -> str:
    return "marks in the corners" if cfg.where == "corners" else "marks along the edges"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 32)


def note(picture: Picture, cfg: Config) -> NDArray[Any]:
    if cfg.where == "edges":
        return tiles(picture, GRID)
    pixels = picture.pixels
    # Each corner turned so that its outermost pixel comes first.
    return np.stack([pixels[:24, :24], pixels[:24, :-25:-1], pixels[:-25:-1, :24], pixels[:-25:-1, :-25:-1]])


def finish(noted: NDArray[Any], cfg: Config) -> Floats:
    if cfg.where == "corners":
        return corners(noted)
    relative: Floats = noted - median(noted.reshape(len(noted), -1, 3), axis=1)[:, None, None]
    return relative[:, _EDGE].reshape(len(noted), -1)


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers


def tiles(picture: Picture, grid: int) -> Floats:
    """(grid, grid, 3): mean brightness, log of the mean step between neighbours, and colourfulness of every tile."""
    down, across = (pooling(side, grid) for side in picture.whole.shape)
    steps = picture.whole_steps
    # No step leads beyond the last pixel: the means have one less to count there.
    size = down @ steps.size_across @ across[:, :-1].T + down[:, :-1] @ steps.size_down @ across.T
    colour = down @ picture.colourfulness.astype(np.float32) @ across.T
    return np.stack([down @ picture.whole @ across.T / 64, np.log(size + 1), np.log(colour + 1)], -1)


def corners(turned: NDArray[np.uint8]) -> Floats:
    """(B, 96) numbers of the four corners (B, 4, 24, 24, 3) of each picture."""
    red, green, blue = (turned[..., k].astype(np.float32) for k in range(3))
    grey = (red + green + blue) / 3
    colour = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    parts = []
    for side in (4, 12):
        inner, ring = grey[..., :side, :side], grey[..., : 2 * side, : 2 * side]
        mean, spread = inner.mean((2, 3)), inner.std((2, 3))
        around = (4 * ring.mean((2, 3)) - mean) / 3  # the inner square is a quarter of the outer one
        parts += [mean / 64, np.log(spread + 1), np.log(colour[..., :side, :side].mean((2, 3)) + 1), np.abs(mean - around) / 32]
        if side == 4:
            bins = (mean[..., None] // 16 == np.arange(16)) * np.exp(-spread / 4)[..., None]
    return np.concatenate([*parts, bins.reshape(len(turned), -1)], 1).astype(np.float32)
