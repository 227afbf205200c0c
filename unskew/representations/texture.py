r"""texture: which small patterns occur together, anywhere in the image; needs no network.

.. math::  G_{kl} = \frac{1}{HW} \sum_p (f_k * x)_p \, (f_l * x)_p, \qquad \phi = \mathrm{sign}(G) \sqrt{|G|}

f are ten fixed filters on the standardised grey image: derivatives in four directions at two scales, and two Laplacians. In
pictures whose short side has 128 pixels or more, p is every second pixel along each side. For the
Gram matrix of a network's layer, use the representation `layer` with `gram=true`.

Source: Gatys, Ecker, Bethge, "Texture synthesis using convolutional neural networks", NeurIPS 2015 (Gram matrices).
Differs: the filters are fixed, so no weights are needed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import grey_of, images_only

PIXELS, CONTENT, PIECES = True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
SIDE = 7
LARGE = 128  # pixels of the short side from which the filters are applied at every second pixel along each side


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the texture"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= SIDE else f"images are smaller than {SIDE} pixels")


_OWN = [0, 2, 4, 5, 7, 9]  # across, down and Laplacian, at two scales


@lru_cache(maxsize=1)
def filters() -> Tensor:
    """(10, 1, 7, 7): each sums to 0 and has norm 1."""
    place = torch.arange(SIDE) - SIDE // 2
    v, u = torch.meshgrid(place.float(), place.float(), indexing="ij")
    bank = []
    for sigma in (0.8, 1.6):
        bell = torch.exp(-(u.square() + v.square()) / (2 * sigma**2))
        for angle in (0, 45, 90, 135):
            t = math.radians(angle)
            bank.append(bell * (u * math.cos(t) + v * math.sin(t)))
        bank.append(bell * ((u.square() + v.square()) / (2 * sigma**2) - 1))
    stacked = torch.stack(bank)
    stacked = stacked - stacked.mean((1, 2), keepdim=True)
    length: Tensor = stacked.flatten(1).norm(dim=1)
    scaled: Tensor = stacked / length[:, None, None]
    return scaled[:, None]


@lru_cache(maxsize=1)
def _mix() -> Tensor:
    """(10, 6): every filter in terms of six of them, as a derivative in any direction is made of those across and down."""
    bank = filters().flatten(1).double()
    solved: Tensor = torch.linalg.lstsq(bank[_OWN].T, bank.T).solution.T.float()
    return solved


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    mix = _mix().to(x)
    answer = F.conv2d(grey_of(x)[:, None], filters()[_OWN].to(x), stride=1 if min(x.shape[2:]) < LARGE else 2).flatten(
        2
    )  # (B, 6, P)
    gram = mix @ (answer @ answer.transpose(1, 2) / answer.shape[2]) @ mix.T  # (B, 10, 10)
    rows, columns = torch.triu_indices(gram.shape[1], gram.shape[1])
    upper = gram[:, rows, columns]
    return upper.sign() * upper.abs().sqrt()
