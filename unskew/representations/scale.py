r"""scale: how large the subject is in the picture: where detail and contrast lie, from the centre outwards.

.. math::  \phi = \Big(\log \frac{\overline{e}_{\text{ring } k}}{\overline{e}},\ \log \frac{\sigma_{\text{ring } k}}{\sigma},\
           \frac{\sum_p e_p r_p}{\sum_p e_p},\ \frac{\sum_p e_p r_p^2}{\sum_p e_p}, \frac{\sum_p e_p p}{\sum_p e_p}\Big)

e is the step to the neighbours at 64 x 64 pixels, r the distance from the centre; five rings. The last three are the mean distance,
its square, and the place of the detail.

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
SIDE, RINGS = 64, 5
_AXIS = (np.arange(SIDE, dtype=np.float32) + 0.5) / SIDE * 2 - 1
_V, _U = np.meshgrid(_AXIS, _AXIS, indexing="ij")
_R = np.maximum(np.abs(_U), np.abs(_V))
_RING = np.minimum((_R * RINGS).astype(int), RINGS - 1).ravel()
_IN_RING = np.equal.outer(_RING, np.arange(RINGS)) / np.bincount(_RING, minlength=RINGS)  # (4096, 5) means of rings
_MOMENTS = np.stack([m.ravel() for m in (_R, _R**2, _U, _V, _U**2, _V**2)], 1).astype(np.float64)


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "how large the subject is"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def note(picture: Picture, cfg: Config) -> Floats:
    return picture.small


def finish(small: Floats, cfg: Config) -> Floats:
    steps = np.full_like(small, 0.1)
    steps[:, :-1] += np.abs(small[:, 1:] - small[:, :-1])
    steps[:, :, :-1] += np.abs(small[:, :, 1:] - small[:, :, :-1])
    flat, energy = small.reshape(len(small), -1).astype(np.float64), steps.reshape(len(small), -1).astype(np.float64)
    rings, level = energy @ _IN_RING, flat @ _IN_RING
    spread = np.sqrt(np.maximum(flat**2 @ _IN_RING - level**2, 0)) + 1
    whole, usual = energy.mean(1, keepdims=True), flat.std(1, keepdims=True) + 1
    moments = energy @ _MOMENTS / energy.sum(1, keepdims=True)
    parts = [np.log(rings / whole), np.log(spread / usual), moments, np.log(whole), np.log(usual)]
    return np.concatenate(parts, 1).astype(np.float32)


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers
