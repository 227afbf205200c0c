r"""tilt: a small rotation: upright and level edges lean to one side.

.. math::  \phi_k = \frac{\sum_p |\nabla x_p|\, e^{4 i k \theta_p}}{\sum_p |\nabla x_p|}, \qquad k = 1, 2, 3, 4

theta is the direction of the gradient; the factor 4 makes level and upright the same. The imaginary parts change sign with the
direction of the tilt. From a short side of 128 pixels on, p is every second pixel along each side.

Source: circular harmonics of the histogram of gradients.
Differs: nothing.
"""

from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
LARGE = 128  # pixels of the short side from which every second pixel along each side is enough


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "a small rotation"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def gradients(grey: Floats, by: int) -> tuple[Floats, Floats]:
    """Differences across and down of every so manyth pixel: over two pixels, smoothed along the other side, as steps between
    neighbours have few directions."""
    rows = slice(0, grey.shape[0] - 2, by), slice(1, grey.shape[0] - 1, by), slice(2, None, by)
    columns = slice(0, grey.shape[1] - 2, by), slice(1, grey.shape[1] - 1, by), slice(2, None, by)
    above, here, below = (grey[r] for r in rows)
    down_of, smooth = below - above, above + 2 * here + below
    across: Floats = smooth[:, columns[2]] - smooth[:, columns[0]]
    down: Floats = down_of[:, columns[0]] + 2 * down_of[:, columns[1]] + down_of[:, columns[2]]
    return across, down


def look(picture: Picture, cfg: Config) -> Floats:
    across, down = gradients(picture.grey, 1 if min(picture.grey.shape) < LARGE else 2)
    size = np.sqrt(across * across + down * down) + np.float32(1e-3)
    real, imaginary = across / size, down / size
    for _ in range(2):  # the fourth power of a number of length 1, by squaring twice
        real, imaginary = real * real - imaginary * imaginary, 2 * real * imaginary
    # Weighted sums of the powers 1 to 4 of z = a + ib: of the weight and z, its square c + id twice; each sum is an inner product.
    a, b, weight = real.ravel(), imaginary.ravel(), size.ravel()
    c, d = a * a - b * b, 2 * a * b
    wa, wb, wc, wd = weight * a, weight * b, weight * c, weight * d
    sums = [wa.sum(), wb.sum(), wc.sum(), wd.sum(), wa @ c - wb @ d, wa @ d + wb @ c, wc @ c - wd @ d, 2 * (wc @ d)]
    numbers: Floats = np.array(sums, dtype=np.float32) / weight.sum()
    return numbers
