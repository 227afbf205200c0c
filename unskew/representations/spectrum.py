r"""spectrum: how much of each spatial frequency and direction an image contains: blur, noise, grids, compression.

.. math::  \phi = \log\big(\epsilon + \mathrm{mean}_{(u,v) \in \text{band}} |\hat x_{uv}|^2\big)

over twelve bands of frequency and six of direction of the standardised grey image.

Source: Torralba and Oliva, "Statistics of natural image categories", Network 2003.
Differs: bands instead of principal components.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import grey_of, images_only

PIXELS, CONTENT, PIECES = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
BANDS, DIRECTIONS = 12, 6


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the frequency spectrum"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= 8 else "images are smaller than 8 pixels")


@lru_cache(maxsize=16)
def bands(height: int, width: int) -> Tensor:
    """(18, frequencies): a row for each of twelve bands of frequency and six of direction, whose numbers sum to 1."""
    v = torch.fft.fftfreq(height)[:, None].expand(height, width // 2 + 1)
    u = torch.fft.rfftfreq(width)[None, :].expand(height, width // 2 + 1)
    radius = ((u.square() + v.square()).sqrt() / math.sqrt(0.5) * BANDS).long().clamp(max=BANDS - 1)
    angle = ((torch.atan2(v, u) / math.pi + 0.5) * DIRECTIONS).long().clamp(0, DIRECTIONS - 1)
    member = torch.cat(
        [code.flatten()[:, None] == torch.arange(size) for code, size in ((radius, BANDS), (angle, DIRECTIONS))], 1
    )
    return (member / member.sum(0).clamp(min=1)).T.contiguous()


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    grey = grey_of(x)
    waves = torch.fft.rfft2(grey, norm="ortho")
    power = torch.addcmul(waves.real.square(), waves.imag, waves.imag).flatten(1)  # a quarter of the time of abs().square()
    return (power @ bands(*grey.shape[1:]).to(x).T + 1e-8).log()
