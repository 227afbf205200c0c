r"""lighting: how light falls off across the picture: a lamp from one side, a vignette.

.. math::  \log(x + 8) \approx \beta_0 + \beta_1 u + \beta_2 v + \beta_3 (u^2 - \tfrac13) + \beta_4 (v^2 - \tfrac13) + \beta_5 u v,
           \qquad \phi = \beta_{1..5}

u and v run from -1 to 1 across and down. Fitted by least squares to the mean brightness of 16 x 16 cells, to the brightest value of
each, which dark objects disturb less, and to the brightest single level of 8 x 8 tiles. The brightest level of each of eight columns
and eight rows of tiles, against that of the whole, comes besides: where the light falls off, nothing reaches white.

Source: least squares on a quadratic surface, as in the correction of shading.
Differs: nothing.
"""

from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
CELLS, TILES = 16, 8


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the direction and fall-off of the light"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def surface(cells: int = CELLS) -> Floats:
    """(5, cells * cells) matrix that takes values on a grid to the coefficients of the surface that fits them, without its level."""
    side = (np.arange(cells) + 0.5) / cells * 2 - 1
    v, u = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    terms = np.stack([np.ones_like(u), u, v, u * u - 1 / 3, v * v - 1 / 3, u * v], 1)
    solved: Floats = np.linalg.pinv(terms)[1:].astype(np.float32)
    return solved


_SURFACE = surface()
_COARSE = surface(TILES)


def brightest(picture: Picture) -> Floats:
    """(8, 8) the brightest level of every tile, over all channels, 0 to 1."""
    some = picture.brightest
    height, width = (side // TILES for side in some.shape)
    lines = (
        some[: height * TILES, : width * TILES].reshape(TILES, height, -1).max(1)
    )  # along columns first: whole lines at a time
    top: Floats = lines.reshape(TILES, TILES, width).max(2).astype(np.float32) / 255
    return top


def note(picture: Picture, cfg: Config) -> Floats:
    """(64, 65) brightness of the whole picture, and the brightest level of every tile as one more column."""
    return np.concatenate([picture.small, brightest(picture).reshape(-1, 1)], 1)


def finish(noted: Floats, cfg: Config) -> Floats:
    by = noted.shape[1] // CELLS
    lines = np.log(noted[:, :, :-1] + 8).reshape(len(noted), CELLS, by, -1)
    # Along columns first: whole lines at a time.
    cells = [found.reshape(-1, by) for found in (lines.mean(2), lines.max(2))]
    mean, top = (found.reshape(len(noted), -1) for found in (cells[0].mean(1), cells[1].max(1)))
    white = noted[:, :, -1]
    white = white - white.max(1, keepdims=True)  # the level of the whole picture is no matter of place
    tiles = white.reshape(len(noted), TILES, TILES)
    return np.concatenate([mean @ _SURFACE.T, top @ _SURFACE.T, white @ _COARSE.T, tiles.max(1), tiles.max(2)], 1)


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers
