r"""detail: sharpness and noise: blur, sharpening, grain, interpolation; a few numbers without any place.

.. math::  \phi = \big(\log \overline{|\nabla x|}_{1,2,4},\ \log \overline{|\Delta x|},\ \log \mathrm{med}|n|,\ \log \mathrm{med}|n|
           \text{ in the dark, middle and bright third},\ \rho(n),\ \kappa\big)

n is the response to the mask (1, -2, 1) x (1, -2, 1), which is nearly blind to edges; rho its correlation with its neighbours, which
interpolation raises; kappa the ratios of the scales and of second to first differences, which blur lowers and sharpening raises. A
mean is the median over 6 x 6 tiles of the mean of each, so that marks in a few of them do not count.

Source: Immerkaer, "Fast noise variance estimation", Computer Vision and Image Understanding 1996.
Differs: medians instead of means; the noise of each third of brightness, as shot noise grows with the light.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
TILES = 6  # along each side


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "sharpness and noise"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def noise_of(grey: Floats) -> Floats:
    """Response to the outer product of (1, -2, 1) with itself, two pixels smaller than the picture."""
    across = grey[:, :-2] - 2 * grey[:, 1:-1] + grey[:, 2:]
    response: Floats = across[:-2] - 2 * across[1:-1] + across[2:]
    return response


def _log(value: float) -> float:
    return float(np.log(value + 0.05))


def _halved(grey: Floats) -> Floats:
    even = grey[: grey.shape[0] // 2 * 2, : grey.shape[1] // 2 * 2]
    halved: Floats = (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) * np.float32(0.25)
    return halved


@lru_cache(maxsize=64)
def pooling(side: int, parts: int) -> Floats:
    """(parts, side) matrix that takes a line of pixels to the means of equal parts of it."""
    long = max(1, side // parts)
    matrix: Floats = np.zeros((parts, side), dtype=np.float32)
    for k in range(min(parts, side)):
        matrix[k, k * long : (k + 1) * long] = 1 / long
    return matrix


def median(values: NDArray[Any], axis: int | None = None) -> NDArray[Any]:
    """The median of few values; NumPy's own spends most of its time on what these do not need.

    >>> float(median(np.array([3.0, 1.0, 2.0, 9.0])))
    2.5
    """
    ordered: NDArray[Any] = np.sort(values, axis=axis)
    length = ordered.shape[axis or 0]
    middle: NDArray[Any] = (ordered.take((length - 1) // 2, axis or 0) + ordered.take(length // 2, axis or 0)) * np.float32(0.5)
    return middle


def typical(values: Floats) -> float:
    """The median over 6 x 6 tiles of the mean of each: what sits in a few of them, such as a logo, does not count."""
    if min(values.shape) < TILES:
        return float(values.mean())
    return float(median(pooling(values.shape[0], TILES) @ values @ pooling(values.shape[1], TILES).T))


def _steps(grey: Floats) -> tuple[float, float]:
    return _log(typical(np.abs(grey[:, 1:] - grey[:, :-1]))), _log(typical(np.abs(grey[1:] - grey[:-1])))


def _at(values: Floats, share: float) -> float:
    """The value below which this share of the values lies."""
    place = int(share * len(values))
    return float(np.partition(values, place)[place])


def _correlation(a: Floats, b: Floats) -> float:
    return float((a * b).mean() / (np.sqrt((a * a).mean() * (b * b).mean()) + 1e-6))


def look(picture: Picture, cfg: Config) -> Floats:
    grey = picture.grey
    half = _halved(grey)
    one, two, four = _steps(grey), _steps(half), _steps(_halved(half))
    noise = noise_of(grey)
    size, level = np.abs(noise), grey[1:-1, 1:-1]
    some, by_level = size[::2, ::2].ravel(), level[::2, ::2].argsort(axis=None)  # a quarter is enough for medians
    third = len(some) // 3
    by_third = [_log(_at(some[by_level[k * third : (k + 1) * third]], 0.5)) for k in range(3)]
    bend = typical(np.abs(grey[:, :-2] - 2 * grey[:, 1:-1] + grey[:, 2:]))
    limit = 4 * _at(some, 0.5) + 1
    noise = np.clip(noise, -limit, limit)  # single strong edges would decide the correlations
    colour = picture.window[..., 0].astype(np.float32) - picture.window[..., 1]
    numbers = [
        *one, *two, *four, one[0] - two[0], one[1] - two[1], two[0] - four[0], two[1] - four[1],
        _log(bend), _log(bend) - one[0], _log(_at(some, 0.5)), _log(_at(some, 0.1)),
        _log(typical(size)), *by_third, by_third[2] - by_third[0],
        _correlation(noise[:, :-1], noise[:, 1:]), _correlation(noise[:-1], noise[1:]),
        _correlation(noise[:-1, :-1], noise[1:, 1:]), _log(typical(np.abs(colour[:, 1:] - colour[:, :-1]))),
    ]  # fmt: skip
    return np.array(numbers, dtype=np.float32)
