r"""sensor: which camera it was: the fixed pattern of its pixels' errors, or single pixels that are always bright or dark.

.. math::  r_i = \mathrm{clip}\Big(\frac{x_i - \bar x_i}{\sigma_i}\Big), \qquad
           K_{ij} = [i \ne j]\, \frac{r_i \cdot r_j}{|r_i| |r_j|}, \qquad \phi_i = (K u_1, \dots, K u_6)_i

x-bar is the mean of 3 x 3 pixels and sigma the local spread, in the middle 64 x 64 pixels. Pictures of one sensor share a pattern, so
their residuals agree a little; the leading eigenvectors u of K show it without a label. A picture is not compared with itself, so
every score correlates it with a pattern that was estimated on other pictures. The errors of pixels far apart have nothing to do with each
other; a shared pattern whose pixels 3 to 8 apart are alike (|correlation| above 0.25) shows subjects that are aligned, and counts as 0.
`pixels` notes where a picture has pixels beyond all
eight neighbours, and keeps the eight places that recur most.

Source: Lukas, Fridrich, Goljan, "Digital camera identification from sensor pattern noise", IEEE TIFS 2006.
Differs: cameras are not known, so the patterns are estimated blind, from a sample of pictures without the one that is compared; a mean
instead of a wavelet filter.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture, Steps
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, FOREIGN, CACHED, PROBE = True, False, True, False, True
VARIANTS = ({"kind": "pattern"}, {"kind": "pixels"})
SIDE = 64
LIMIT = 3.0  # of a residual, in local standard deviations
PATTERNS = 6
FAR = range(3, 9)  # pixels: the filter and a colour mosaic reach 2
ALIKE = 0.25  # correlation of pixels that far apart; about 0.1 for cameras, 0.4 and more for what pictures show
PLACES = 8  # recurring pixels
NOTED = 12  # of each picture
SAMPLE = 1500  # rows from which the patterns are estimated
NEAR = 20  # pixels within which a second place that recurs at least half as often speaks against a single pixel
BEYOND = 12.0  # levels by which a pixel must exceed all its neighbours


@dataclass(frozen=True)
class Config:
    kind: Literal["pattern", "pixels"] = "pattern"  # the pattern of all pixels, or single bright and dark ones


def phrase(cfg: Config) -> str:
    return "the fixed pattern of the sensor" if cfg.kind == "pattern" else "single pixels that are always bright or dark"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 32)


def look(picture: Picture, cfg: Config) -> NDArray[np.int8] | Floats:
    return residual(picture.grey) if cfg.kind == "pattern" else outliers(picture.grey, picture.steps.bend_across)


def _around(grey: Floats) -> Floats:
    """Mean of 3 x 3 pixels, two smaller than the picture."""
    three = grey[:, :-2] + grey[:, 1:-1] + grey[:, 2:]
    mean: Floats = (three[:-2] + three[1:-1] + three[2:]) * np.float32(1 / 9)
    return mean


def residual(grey: Floats) -> NDArray[np.int8]:
    """What the neighbours do not explain, in local standard deviations, in steps of 1/40; the middle of the picture."""
    top, left = (max(0, (side - SIDE - 4) // 2) for side in grey.shape)
    part = grey[top : top + SIDE + 4, left : left + SIDE + 4]
    rest = part[1:-1, 1:-1] - _around(part)
    spread = np.sqrt(_around(rest * rest)) + 1
    scaled = np.clip(rest[1:-1, 1:-1] / spread, -LIMIT, LIMIT)
    full = np.zeros((SIDE, SIDE), dtype=np.int8)
    full[: scaled.shape[0], : scaled.shape[1]] = np.rint(scaled * 40)
    return full.ravel()


def outliers(grey: Floats, bends: Floats | None = None) -> Floats:
    """Places (row * 1024 + column + 1) of the pixels that exceed, or fall below, all eight neighbours most; 0: no more of them.

    `bends` are a picture's second differences across, if they are known: where they are small, no pixel stands out.
    """
    bends = Steps(grey).bend_across if bends is None else bends
    wide = grey.shape[1]
    row, column = np.divmod(np.flatnonzero(np.abs(bends[1:-1]) > 2 * BEYOND - 0.1), wide - 2)
    level, at = grey.ravel(), (row + 1) * wide + column + 1
    sides = np.stack([level[at + dy * wide + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx])
    beyond = np.maximum(level[at] - sides.max(0), sides.min(0) - level[at])
    first = (beyond > BEYOND).nonzero()[0]
    first = first[beyond[first].argsort()[-NOTED:]]
    places = np.zeros(NOTED, dtype=np.float32)
    places[: len(first)] = row[first] * 1024 + column[first] + 1
    return places


@dataclass(frozen=True)
class Patterns:
    """What most pictures of the sample share."""

    mean: Tensor  # (D,) residual
    pattern: Tensor  # (D, 6)
    place: Tensor  # (m,) where a row of the sample is among those that the patterns are estimated on, or -1
    own: Tensor  # (SAMPLE, 6) agreement of these with the others: a picture is not compared with itself


def learn(block: Tensor, y: Tensor, cfg: Config) -> Patterns | Tensor:
    return patterns(block) if cfg.kind == "pattern" else recurring(block.long())


def score(learnt: Patterns | Tensor, block: Tensor, place: Tensor, cfg: Config) -> Tensor:
    return agreement(learnt, block, place) if isinstance(learnt, Patterns) else here(learnt, block.long())


def patterns(rest: Tensor) -> Patterns:
    """The patterns that most rows of a sample share, from their residuals (m, D)."""
    rest = rest.to(torch.float32, copy=True)  # changed in place, not copied again
    mean = rest.mean(0)
    rest -= mean
    rest /= rest.norm(dim=1, keepdim=True).clamp(min=1e-6)
    some = torch.linspace(0, len(rest) - 1, min(SAMPLE, len(rest))).long()
    agree = rest[some] @ rest[some].T
    agree.fill_diagonal_(0)
    count = min(PATTERNS, len(some))
    vectors = torch.linalg.eigh(agree.double())[1][:, -count:].float()
    place = torch.full((len(rest),), -1)
    place[some] = torch.arange(len(some))
    shared = rest[some].T @ vectors
    camera = torch.tensor([far_correlation(one.view(SIDE, SIDE)) <= ALIKE for one in shared.T])
    return Patterns(mean, shared * camera, place, agree @ vectors * camera)


def far_correlation(pattern: Tensor) -> float:
    """The largest correlation, in size, of pixels 3 to 8 apart along rows, columns and diagonals."""
    p = (pattern - pattern.mean()) / pattern.std().clamp(min=1e-12)
    found = []
    for d in FAR:
        left, right, up, down = p[:, :-d], p[:, d:], p[:-d], p[d:]
        found += [(left * right).mean(), (up * down).mean(), (left[:-d] * right[d:]).mean(), (left[d:] * right[:-d]).mean()]
    return float(torch.stack(found).abs().max())


def agreement(learnt: Patterns, rest: Tensor, place: Tensor) -> Tensor:
    """(n, 6) agreement of every row's residual with the patterns, not counting the row itself."""
    rest = rest.float() - learnt.mean
    rest /= rest.norm(dim=1, keepdim=True).clamp(min=1e-6)
    scores = rest @ learnt.pattern
    mine = torch.where(place >= 0, learnt.place[place.clamp(min=0)], -1)
    scores[mine >= 0] = learnt.own[mine[mine >= 0]]
    return scores


def recurring(places: Tensor) -> Tensor:
    """(at most 8,) the places that recur most in a sample (m, NOTED); 0 is no place.

    Places that recur side by side belong to something larger than a pixel, such as a stamp, and are left out.
    """
    count = places[places > 0].bincount()
    found = count.nonzero().flatten()
    leading = found[count[found].argsort(descending=True, stable=True)[: 8 * PLACES]]
    row, column, often = (leading - 1) // 1024, (leading - 1) % 1024, count[leading]
    near = ((row[:, None] - row).abs() <= NEAR) & ((column[:, None] - column).abs() <= NEAR) & (2 * often > often[:, None])
    return leading[near.sum(1) <= 1][:PLACES]


def here(leading: Tensor, places: Tensor) -> Tensor:
    """(n, 8) whether each of these places is among a row's own (n, NOTED)."""
    found = (places[:, :, None] == leading).any(1).float()
    return torch.cat([found, found.new_zeros(len(places), PLACES - len(leading))], 1)
