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

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only
from unskew.representations.detail import median

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
STRONG = 110.0  # levels
CELL = 8
WIDE = 5  # cells of a window
BOXES = 3  # along each channel
_CODE = np.array([BOXES * BOXES, BOXES, 1])


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "writing over the picture"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 2 * CELL * WIDE)


def strokes(grey: Floats) -> tuple[Floats, Floats]:
    """How far every pixel stands out from its neighbours on both sides, upwards and downwards; a pixel smaller on each side."""
    inner = 2 * grey[1:-1, 1:-1]
    across, down = inner - grey[1:-1, :-2] - grey[1:-1, 2:], inner - grey[:-2, 1:-1] - grey[2:, 1:-1]
    return np.maximum(across, down), -np.minimum(across, down)


def windows(strong: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> Floats:
    """(rows, columns) share of strokes in windows of 1 x 5 cells."""
    rows, columns = strong.shape[0] // CELL, strong.shape[1] // CELL
    cells = strong[: rows * CELL, : columns * CELL].reshape(rows, CELL, columns, CELL).mean((1, 3), dtype=np.float32)
    total: Floats = np.zeros((rows, columns + 1), dtype=np.float32)
    cells.cumsum(1, out=total[:, 1:])
    shares: Floats = (total[:, WIDE:] - total[:, :-WIDE]) * np.float32(1 / WIDE)
    return shares


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.whole
    shown = picture.pixels[:: picture.by, :: picture.by][1:-1, 1:-1]
    numbers = []
    for beyond in strokes(grey):
        strong = beyond > STRONG
        boxes = (shown[strong].astype(np.int64) * BOXES // 256) @ _CODE
        numbers.append(np.sqrt(np.bincount(boxes, minlength=BOXES**3) * (1000 / strong.size)))
        dense = np.sort(windows(strong), axis=None)[::-1] if strong.shape[1] >= CELL * WIDE else np.zeros(1)
        first, usual = float(dense[0]), float(median(dense))
        top = [first, dense[:3].mean(), first - dense[min(len(dense) - 1, 12)], np.log(first + 0.01) - np.log(usual + 0.01)]
        numbers.append(np.array([*top, strong.mean()]))
    return np.concatenate(numbers).astype(np.float32)
