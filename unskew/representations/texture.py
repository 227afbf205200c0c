r"""texture: which small patterns occur together, anywhere in the image; needs no network.

.. math::  G_{kl} = \frac{1}{HW} \sum_p (f_k * x)_p \, (f_l * x)_p, \qquad \phi = \mathrm{sign}(G) \sqrt{|G|}

f are ten fixed filters on the standardised grey image: derivatives in four directions at two scales, and two Laplacians. For the
Gram matrix of a network's layer, use the representation `layer` with `gram=true`.

Source: Gatys, Ecker, Bethge, "Texture synthesis using convolutional neural networks", NeurIPS 2015 (Gram matrices).
Differs: the filters are fixed, so no weights are needed.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.representations._contract import grey_of, images_only

PIXELS, CONTENT = True, False
VARIANTS: tuple[dict[str, str], ...] = ({},)
SIDE = 7


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the texture"


def applies(data: DataSet, cfg: Config) -> str:
    return images_only(data) or ("" if min(data.shape[1:]) >= SIDE else f"images are smaller than {SIDE} pixels")


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


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    answer = F.conv2d(grey_of(x)[:, None], filters().to(x)).flatten(2)  # (B, 10, P)
    gram = answer @ answer.transpose(1, 2) / answer.shape[2]
    rows, columns = torch.triu_indices(gram.shape[1], gram.shape[1])
    upper = gram[:, rows, columns]
    return upper.sign() * upper.abs().sqrt()
