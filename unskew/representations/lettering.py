r"""lettering: writing over the picture, wherever it is: thin strong strokes, crowded together, of one colour.

.. math::  s_p = \max\big(2 x_p - x_{p-1} - x_{p+1}\big)\ \text{across and down}, \qquad \phi = \Big(\sqrt{P(s_p > 110,\ \text{colour} \in
           \text{box } k)},\ \text{the densest windows of strokes against the rest}\Big)

The same for dark strokes. Colours are counted in 3 x 3 x 3 boxes: an overlay has one colour in every picture. Windows are 8 pixels
high and 40 wide.

Source: stroke density, as in early detectors of captions (Smith and Kanade, "Video skimming and characterization", 1997).
Differs: nothing is read; text-like edges are enough.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture, Steps, median
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
STRONG = 110.0  # levels
CELL = 8
WIDE = 5  # cells of a window
BOXES = 3  # along each channel
_CODE = np.array([BOXES * BOXES, BOXES, 1])
_BOX = np.arange(256) * BOXES // 256  # of a level


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "writing over the picture"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 2 * CELL * WIDE)


def strokes(steps: Steps) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where a pixel stands out from its neighbours on both sides, upwards and downwards; a pixel smaller on each side."""
    across, down = steps.bend_across[1:-1], steps.bend_down[:, 1:-1]
    return (across < -STRONG) | (down < -STRONG), (across > STRONG) | (down > STRONG)


def windows(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    """(cells down, cells across) share of strokes in windows of 1 x 5 cells, of the strokes at these rows and columns."""
    down, across = shape[0] // CELL, shape[1] // CELL
    row, column = rows // CELL, columns // CELL
    inside = (row < down) & (column < across)
    cells = np.bincount((row * across + column)[inside], minlength=down * across).reshape(down, across)
    total = np.zeros((down, across + 1), dtype=np.int64)
    cells.cumsum(1, out=total[:, 1:])
    shares: Floats = (total[:, WIDE:] - total[:, :-WIDE]).astype(np.float32) * np.float32(1 / (WIDE * CELL * CELL))
    return shares


def look(picture: Picture, cfg: Config) -> Floats:
    numbers = []
    for strong in strokes(picture.whole_steps):
        if not strong.any():
            numbers.append(np.zeros(BOXES**3 + 5))
            continue
        rows, columns = np.divmod(np.flatnonzero(strong), strong.shape[1])  # few, mostly: nothing below is done for every pixel
        boxes = _BOX[picture.pixels[(rows + 1) * picture.by, (columns + 1) * picture.by]] @ _CODE
        numbers.append(np.sqrt(np.bincount(boxes, minlength=BOXES**3) * (1000 / strong.size)))
        shape = strong.shape[0], strong.shape[1]
        dense = np.sort(windows(rows, columns, shape), axis=None)[::-1] if strong.shape[1] >= CELL * WIDE else np.zeros(1)
        first, usual = float(dense[0]), float(median(dense))
        top = [first, dense[:3].mean(), first - dense[min(len(dense) - 1, 12)], np.log(first + 0.01) - np.log(usual + 0.01)]
        numbers.append(np.array([*top, len(rows) / strong.size]))
    return np.concatenate(numbers).astype(np.float32)
