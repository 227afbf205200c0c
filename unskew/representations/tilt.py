r"""tilt: a small rotation: upright and level edges lean to one side.

.. math::  \phi_k = \frac{\sum_p |\nabla x_p|\, e^{4 i k \theta_p}}{\sum_p |\nabla x_p|}, \qquad k = 1, 2, 3, 4

theta is the direction of the gradient; the factor 4 makes level and upright the same. The imaginary parts change sign with the
direction of the tilt.

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
ORDERS = 4


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "a small rotation"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.grey
    # Central differences over two pixels, smoothed across: steps between neighbours have few directions.
    across = grey[1:-1, 2:] - grey[1:-1, :-2]
    down = grey[2:, 1:-1] - grey[:-2, 1:-1]
    across = across[:-2] + 2 * across[1:-1] + across[2:]
    down = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    gradient = (across[:, 1:-1] + np.complex64(1j) * down[1:-1]).astype(np.complex64)
    size = np.abs(gradient) + 1e-3
    turn = np.square(np.square(gradient / size))
    weight = size / size.sum()
    numbers, power = [], np.ones_like(turn)
    for _ in range(ORDERS):
        power = power * turn
        mean = (weight * power).sum()
        numbers += [float(mean.real), float(mean.imag)]
    return np.array(numbers, dtype=np.float32)
