r"""spectrum: how much of each spatial frequency and direction an image contains: blur, noise, grids, compression.

.. math::  \phi = \log\big(\epsilon + \mathrm{mean}_{(u,v) \in \text{band}} |\hat x_{uv}|^2\big)

over twelve bands of frequency and six of direction of the standardised grey image.

Source: Torralba and Oliva, "Statistics of natural image categories", Network 2003.
Differs: bands instead of principal components.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import grey_of, images_only

PIXELS, CONTENT = True, False
VARIANTS: tuple[dict[str, str], ...] = ({},)
BANDS, DIRECTIONS = 12, 6


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the frequency spectrum"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= 8 else "images are smaller than 8 pixels")


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    grey = grey_of(x)
    power = torch.fft.rfft2(grey, norm="ortho").abs().square()
    v = torch.fft.fftfreq(grey.shape[1])[:, None].expand(power.shape[1:])
    u = torch.fft.rfftfreq(grey.shape[2])[None, :].expand(power.shape[1:])
    radius = ((u.square() + v.square()).sqrt() / math.sqrt(0.5) * BANDS).long().clamp(max=BANDS - 1)
    angle = ((torch.atan2(v, u) / math.pi + 0.5) * DIRECTIONS).long().clamp(0, DIRECTIONS - 1)
    parts = []
    for code, size in ((radius, BANDS), (angle, DIRECTIONS)):
        sums = torch.zeros(len(x), size).index_add_(1, code.flatten(), power.flatten(1))
        counts = torch.zeros(size).index_add_(0, code.flatten(), torch.ones(code.numel()))
        parts.append((sums / counts.clamp(min=1) + 1e-8).log())
    return torch.cat(parts, 1)
