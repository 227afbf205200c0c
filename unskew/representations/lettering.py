r"""lettering: writing over the picture, wherever it is: thin strong strokes crowded together in one place.

.. math::  s_p = [\,|x_{p-2} - 2 x_p + x_{p+2}| > 70\,]\ \text{across and down}, \qquad \phi = \text{densest windows of } s
           \text{ against the rest, and the colour of their strokes}

Windows are 8 pixels high and 24 wide. The colour is the mean of the strokes that are brighter than what is around them, in the densest
window: overlays have one colour in every picture.

Source: stroke density, as in early detectors of captions (Smith and Kanade, "Video skimming and characterization", 1997).
Differs: nothing is read; text-like edges are enough.
"""

from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
STRONG = 70.0  # levels
HEIGHT, WIDTH = 8, 24


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "writing over the picture"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 32)


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.whole
    inner = grey[2:-2, 2:-2]
    across = 2 * inner - grey[2:-2, :-4] - grey[2:-2, 4:]
    down = 2 * inner - grey[:-4, 2:-2] - grey[4:, 2:-2]
    strokes = (np.abs(across) > STRONG).astype(np.float32) + (np.abs(down) > STRONG)
    rows, columns = strokes.shape[0] // HEIGHT, strokes.shape[1] // HEIGHT
    cells = strokes[: rows * HEIGHT, : columns * HEIGHT].reshape(rows, HEIGHT, columns, HEIGHT).mean((1, 3))
    windows = (cells[:, :-2] + cells[:, 1:-1] + cells[:, 2:]) / 3
    order = np.sort(windows, axis=None)[::-1]
    row, column = np.unravel_index(int(windows.argmax()), windows.shape)
    top, left = int(row) * HEIGHT, int(column) * HEIGHT
    place = (slice(top, top + HEIGHT), slice(left, left + WIDTH))
    bright = np.maximum(across, down)[place] > STRONG
    by = max(1, picture.pixels.shape[0] // grey.shape[0])
    shown = picture.pixels[::by, ::by][2 : 2 + inner.shape[0], 2 : 2 + inner.shape[1]][place]
    colour = shown[bright].mean(0) / 64 if bright.any() else np.zeros(3)
    extreme = float((shown[bright].max(1) > 245).mean()) if bright.any() else 0.0
    numbers = [
        order[0], order[:3].mean(), float(np.median(order)), float(cells.mean()),
        order[0] - order[min(len(order) - 1, 8)], float(np.log(order[0] + 0.01) - np.log(cells.mean() + 0.01)),
        float(bright.mean()), extreme, *colour, float(colour.max() - colour.min()), row / max(rows, 1), column / max(columns, 1),
    ]  # fmt: skip
    return np.array(numbers, dtype=np.float32)
