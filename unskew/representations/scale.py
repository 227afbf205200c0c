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
_COUNT = np.bincount(_RING, minlength=RINGS)


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "how large the subject is"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def look(picture: Picture, cfg: Config) -> Floats:
    small = picture.small
    steps = np.abs(np.diff(small, axis=0, append=small[-1:])) + np.abs(np.diff(small, axis=1, append=small[:, -1:])) + 0.1
    total = float(steps.sum())
    rings = np.bincount(_RING, steps.ravel(), RINGS) / _COUNT
    level = np.bincount(_RING, small.ravel(), RINGS) / _COUNT
    spread = np.sqrt(np.maximum(np.bincount(_RING, small.ravel() ** 2, RINGS) / _COUNT - level**2, 0)) + 1
    moments = [float((steps * m).sum()) / total for m in (_R, _R**2, _U, _V, _U**2, _V**2)]
    whole = [float(np.log(steps.mean())), float(np.log(small.std() + 1))]
    parts = [np.log(rings / steps.mean()), np.log(spread / (small.std() + 1)), moments, whole]
    return np.concatenate(parts).astype(np.float32)
