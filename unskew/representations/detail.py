r"""detail: sharpness and noise: blur, sharpening, grain, interpolation; a few numbers without any place.

.. math::  \phi = \big(\log \overline{|\nabla x|}_{1,2,4},\ \log \overline{|\Delta x|},\ \log \mathrm{med}|n|,\ \log \mathrm{med}|n|
           \text{ in the dark, middle and bright third},\ \rho(n),\ \kappa\big)

n is the response to the mask (1, -2, 1) x (1, -2, 1), which is nearly blind to edges; rho its correlation with its neighbours, which
interpolation raises; kappa the ratios of the scales and of second to first differences, which blur lowers and sharpening raises. A
mean is the median over 6 x 6 tiles of the mean of each, so that marks in a few of them do not count. Medians of n take every second
pixel along each side, every third from a short side of 128 pixels on.

Source: Immerkaer, "Fast noise variance estimation", Computer Vision and Image Understanding 1996.
Differs: medians instead of means; the noise of each third of brightness, as shot noise grows with the light.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture, Steps, median, pooling
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
TILES = 6  # along each side
LARGE = (
    128  # pixels of the short side from which every third pixel along each side is enough for medians, instead of every second
)


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "sharpness and noise"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data)


def noise_of(grey: Floats) -> Floats:
    """Response to the outer product of (1, -2, 1) with itself, two pixels smaller than the picture."""
    return _twice_down(Steps(grey).bend_across)


def _twice_down(values: Floats) -> Floats:
    once = values[1:] - values[:-1]
    differences: Floats = once[1:] - once[:-1]
    return differences


def _halved(grey: Floats) -> Floats:
    even = grey[: grey.shape[0] // 2 * 2, : grey.shape[1] // 2 * 2]
    lines = even[::2] + even[1::2]
    halved: Floats = (lines[:, ::2] + lines[:, 1::2]) * np.float32(0.25)
    return halved


def tiles(values: Floats) -> Floats:
    """(36,) means of 6 x 6 tiles; of a small picture, the mean of all 36 times."""
    if min(values.shape) < TILES:
        return np.full(TILES * TILES, values.mean(), dtype=np.float32)
    means: NDArray[Any] = pooling(values.shape[0], TILES) @ values @ pooling(values.shape[1], TILES).T
    return means.ravel()


def typical(values: Floats) -> float:
    """The median over 6 x 6 tiles of the mean of each: what sits in a few of them, such as a logo, does not count."""
    return float(median(tiles(values)))


def _at(values: Floats, place: int) -> float:
    """The value that so many of the values do not exceed."""
    return float(np.partition(values, place)[place])


def neighbours(noise: Floats) -> list[float]:
    """Correlation of each value with the next across, down, and along the diagonal. Lines are joined end to end: a value at the
    end of a line is compared with one that has nothing to do with it, which lowers all correlations by the same small share."""
    line, wide = noise.ravel(), noise.shape[1]
    power = float(line @ line) / len(line) + 1e-6
    return [float(line[:-far] @ line[far:]) / (len(line) - far) / power for far in (1, wide, wide + 1)]


def _of_colour(picture: Picture) -> Floats:
    """(H, W - 1) the steps across of red less green."""
    red, green = picture.channels[:2] if picture.window is picture.pixels else picture.window.transpose(2, 0, 1)[:2]
    colour = red.astype(np.int16)
    colour -= green
    steps = np.zeros_like(colour)
    np.subtract(colour.ravel()[1:], colour.ravel()[:-1], out=steps.ravel()[:-1])  # as if all lines were one
    sizes: Floats = np.abs(steps, out=steps).astype(np.float32)
    return sizes[:, :-1]


def note(picture: Picture, cfg: Config) -> Floats:
    """Tiles of the sizes of steps at three scales, of bends, of noise and of colour; then what else is seen of the noise."""
    grey, steps = picture.grey, picture.steps
    half = _halved(grey)
    scales = (steps, Steps(half), Steps(_halved(half)))
    noise = _twice_down(steps.bend_across)
    size = np.abs(noise)
    by = 2 if min(grey.shape) < LARGE else 3
    some, level = size[::by, ::by].ravel(), grey[1:-1:by, 1:-1:by].ravel()
    third = len(some) // 3
    by_level = level.argpartition((third, 2 * third))
    by_third = [_at(some[by_level[k * third : (k + 1) * third]], third // 2) for k in range(3)]
    tenth, middle = int(0.1 * len(some)), len(some) // 2
    some.partition(middle)  # one place after the other: two at once take half as long again
    usual = float(some[middle])
    limit = 4 * usual + 1
    np.clip(noise, -limit, limit, out=noise)  # single strong edges would decide the correlations
    sizes = [one for scale in scales for one in (scale.size_across, scale.size_down)]
    sizes += [np.abs(steps.bend_across), size, _of_colour(picture)]
    rest = [usual, _at(some[:middle], tenth), *by_third, *neighbours(noise)]
    return np.concatenate([*(tiles(one) for one in sizes), np.array(rest, dtype=np.float32)])


def finish(noted: Floats, cfg: Config) -> Floats:
    """(B, 23) numbers from what was noted of several pictures."""
    count = TILES * TILES
    usual = median(noted[:, : 9 * count].reshape(len(noted), 9, count), axis=2)
    rest = noted[:, 9 * count :]
    steps, levels = np.log(usual.astype(np.float64) + 0.05), np.log(rest[:, :5].astype(np.float64) + 0.05)
    one, two, four, bend = steps[:, :2], steps[:, 2:4], steps[:, 4:6], steps[:, 6:7]
    numbers = [
        one, two, four, one - two, two - four, bend, bend - one[:, :1], levels[:, :2], steps[:, 7:8], levels[:, 2:],
        levels[:, 4:] - levels[:, 2:3], rest[:, 5:], steps[:, 8:],
    ]  # fmt: skip
    return np.concatenate(numbers, 1).astype(np.float32)


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers
