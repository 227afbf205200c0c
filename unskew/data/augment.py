"""Augmentation of a whole batch on the device, the same in one process and in many.

Each step has one random stream for the whole batch, from which a process takes its rows; the pixel work is one warp and one
colour change per batch, not a loop over images. All frames of a clip are changed alike.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream

TRIES = 10  # draws of a crop before the whole image is taken


@dataclass(frozen=True, slots=True)
class Augment:
    """What may be changed, and how far. Everything off by default."""

    scale: tuple[float, float] = (1.0, 1.0)  # area of the crop, as a share of the image
    aspect: tuple[float, float] = (1.0, 1.0)  # width over height of the crop; if it varies, the crop lies inside the image
    shift: float = 0.0  # largest translation, as a share of the side
    rotate: float = 0.0  # largest angle, in degrees
    flip: bool = False  # left-right, half of the rows
    hue: float = 0.0  # largest turn of the hue, as a share of the circle
    saturation: float = 0.0  # largest relative change
    nearest: bool = False  # nearest-neighbour instead of bilinear sampling

    @property
    def moves(self) -> bool:
        return self.scale != (1.0, 1.0) or self.aspect != (1.0, 1.0) or self.shift > 0 or self.rotate > 0 or self.flip


PRESETS = {
    "none": Augment(),
    "flip": Augment(flip=True),
    "crop-flip": Augment(scale=(0.6, 1.0), shift=0.1, flip=True),
    "shift": Augment(shift=2 / 28, nearest=True),
    "light": Augment(scale=(0.8, 1.0), shift=0.06),
    # RandomResizedCrop(0.9, 1.1), ColorJitter and RandomRotation of torchvision: one warp with nearest-neighbour sampling, where
    # torchvision crops bilinearly, in whole pixels, and then rotates.
    "pgd": Augment(scale=(0.9, 1.1), aspect=(3 / 4, 4 / 3), rotate=10.0, hue=0.05, saturation=0.05, nearest=True),
}


def preset(name: str) -> Augment:
    if name not in PRESETS:
        raise UserError(f"data.augment={name}: must be one of {', '.join(PRESETS)}")
    return PRESETS[name]


def augment(x: Tensor, how: Augment, seed: int, step: int, rows: int, mine: slice) -> Tensor:
    """`x` (B, C, H, W) or (B, T, C, H, W) in [0, 1], changed by the draws of `step` for a batch of `rows` rows."""
    if x.ndim < 4 or how == PRESETS["none"]:
        return x
    u = torch.rand(rows, 7, generator=stream(seed, "augment", step))[mine].to(x)
    frames = x.shape[1] if x.ndim == 5 else 1
    flat = x.flatten(0, 1) if x.ndim == 5 else x
    u = u.repeat_interleave(frames, 0)
    if how.moves:
        crop = None
        if how.aspect != (1.0, 1.0):
            draws = torch.rand(rows, TRIES + 1, 2, generator=stream(seed, "crop", step))[mine].to(x)
            crop = crops(draws, how, *flat.shape[2:]).repeat_interleave(frames, 0)
        grid = sampling_grid(affine(u, how, crop), *flat.shape[2:])
        flat = F.grid_sample(flat, grid, mode="nearest" if how.nearest else "bilinear", align_corners=False)
    if (how.hue or how.saturation) and flat.shape[1] == 3:
        flat = turn_colours(flat, (2 * u[:, 5] - 1) * how.hue, 1 + (2 * u[:, 6] - 1) * how.saturation)
    return flat.reshape(x.shape)


def crops(draws: Tensor, how: Augment, height: int, width: int) -> Tensor:
    r"""(B, 4) width, height and centre of every crop, as torchvision's RandomResizedCrop draws them; the grid runs from -1 to 1.

    .. math::  w = \sqrt{a\,r}, \quad h = \sqrt{a / r}, \qquad a \sim U(\text{scale}), \quad \log r \sim U(\log \text{aspect})

    in units of a square image's side. The first of ten draws that fits inside the image is placed at random; if none fits, the
    crop is the largest centred one of an allowed aspect. So an area above 1 never enlarges the view.

    >>> whole = crops(torch.full((1, TRIES + 1, 2), 0.99), Augment(scale=(0.9, 1.1), aspect=(3 / 4, 4 / 3)), 28, 28)
    >>> whole.tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """
    low, high = how.scale
    narrow, wide = how.aspect
    area = low + (high - low) * draws[:, :-1, 0]
    aspect = (math.log(narrow) + (math.log(wide) - math.log(narrow)) * draws[:, :-1, 1]).exp() * height / width
    sides = torch.stack([(area * aspect).sqrt(), (area / aspect).sqrt()], 2)
    fits = (sides <= 1).all(2)
    first = sides[torch.arange(len(sides)), fits.int().argmax(1)]
    own = width / height
    central = sides.new_tensor([min(1.0, wide / own), min(1.0, own / narrow)])
    chosen = torch.where(fits.any(1, keepdim=True), first, central)
    centre = (1 - chosen) * (2 * draws[:, -1] - 1) * fits.any(1, keepdim=True)
    return torch.cat([chosen, centre], 1)


def affine(u: Tensor, how: Augment, crop: Tensor | None = None) -> Tensor:
    r"""The sampling matrices (B, 2, 3): output pixel p takes the input at A p + t; of the crop, if one is given.

    .. math::  A = s \begin{pmatrix} f\cos\theta & -\sin\theta \\ f\sin\theta & \cos\theta \end{pmatrix},
               \quad s = \sqrt{\text{area}}, \quad f = \pm 1 \text{ the flip}

    >>> affine(torch.full((1, 7), 0.5), PRESETS["none"])[0].abs().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    low, top = how.scale
    side = (low + (top - low) * u[:, 0]).sqrt()
    theta = (2 * u[:, 1] - 1) * math.radians(how.rotate)
    mirror = torch.where(u[:, 2] < 0.5, -1.0, 1.0).to(u) if how.flip else torch.ones_like(side)
    shift = 2 * how.shift * (2 * u[:, 3:5] - 1)  # the grid runs from -1 to 1
    wide, high, shift = (side, side, shift) if crop is None else (crop[:, 0], crop[:, 1], crop[:, 2:])
    row0 = torch.stack([wide * mirror * theta.cos(), -wide * theta.sin(), shift[:, 0]], 1)
    row1 = torch.stack([high * mirror * theta.sin(), high * theta.cos(), shift[:, 1]], 1)
    return torch.stack([row0, row1], 1)


def sampling_grid(matrix: Tensor, height: int, width: int) -> Tensor:
    """Where each output pixel is sampled, (B, H, W, 2) in [-1, 1]: a faster affine_grid, as sums of a row and a column."""
    x, y = ((2 * torch.arange(n, device=matrix.device, dtype=matrix.dtype) + 1) / n - 1 for n in (width, height))
    grid = torch.empty(len(matrix), height, width, 2, device=matrix.device, dtype=matrix.dtype)
    for k in range(2):
        across, down, shift = (column[:, None] for column in matrix[:, k].unbind(1))
        torch.add((across * x)[:, None], (down * y + shift)[:, :, None], out=grid[..., k])
    return grid


def turn_colours(x: Tensor, hue: Tensor, saturation: Tensor) -> Tensor:
    r"""Images (B, 3, H, W) in [0, 1], each with its hue turned by a share of the circle and its saturation scaled.

    As in HSV, with value V and chroma C, but without converting there and back (three times as fast as kornia):

    .. math::  V' = V, \quad C' = \min(s\,C, V), \quad h' = h + 6\,\text{hue} \bmod 6, \quad
               x'_c = V - C' + C'\, t_c(h'), \quad t_r = [|h' - 3| - 1]_0^1,\; t_g = [2 - |h' - 2|]_0^1,\; t_b = [2 - |h' - 4|]_0^1

    >>> red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    >>> turn_colours(red, torch.tensor([1 / 3]), torch.tensor([0.5])).flatten().tolist()  # green, half grey
    [0.5, 1.0, 0.5]
    """
    red, green, blue = x.transpose(0, 1).contiguous().unbind(0)
    value = torch.maximum(red, green).maximum(blue)
    chroma = value - torch.minimum(red, green).minimum(blue)
    # Sixths of the circle: from the largest channel (red 0, green 2, blue 4) towards the next. Grey has no chroma and stays grey.
    # Comparisons write numbers: a choice by booleans takes ten times as long.
    is_red, is_green = (torch.eq(value, channel, out=torch.empty_like(value)) for channel in (red, green))
    is_green.mul_(1 - is_red)
    is_blue = (1 - is_red).sub_(is_green)
    towards = (is_red * (green - blue)).addcmul_(is_green, blue - red).addcmul_(is_blue, red - green)
    start = is_blue.mul_(4).add_(is_green, alpha=2)
    h = towards.div_(chroma.clamp(min=torch.finfo(x.dtype).tiny)).add_(start).add_(6 * hue[:, None, None])
    h.sub_(h.div(6).floor_(), alpha=6)
    chroma = torch.minimum(chroma.mul_(saturation[:, None, None]), value)
    least, out = value - chroma, torch.empty_like(x)
    tents = (h.sub(3).abs_().sub_(1), h.sub(2).abs_().neg_().add_(2), h.sub(4).abs_().neg_().add_(2))
    for k, tent in enumerate(tents):
        torch.addcmul(least, chroma, tent.clamp_(0, 1), out=out[:, k])
    return out
