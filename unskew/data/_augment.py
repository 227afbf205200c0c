"""Augmentation of a whole batch on the device, the same in one process and in many.

The random numbers of every row come from a stream of the step for the whole batch, of which a process takes its rows; the
pixel work is one warp and one colour change per batch (kornia and torch), not a loop over images. All frames of a clip are changed alike.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.errors import UserError
from unskew.rng import stream


@dataclass(frozen=True, slots=True)
class Augment:
    """What may be changed, and how far. Everything off by default."""

    scale: tuple[float, float] = (1.0, 1.0)  # area of the crop, as a share of the image
    shift: float = 0.0  # largest translation, as a share of the side
    rotate: float = 0.0  # largest angle, in degrees
    flip: bool = False  # left-right, half of the rows
    hue: float = 0.0  # largest turn of the hue, as a share of the circle
    saturation: float = 0.0  # largest relative change
    nearest: bool = False  # nearest-neighbour instead of bilinear sampling

    @property
    def moves(self) -> bool:
        return self.scale != (1.0, 1.0) or self.shift > 0 or self.rotate > 0 or self.flip


PRESETS = {
    "none": Augment(),
    "flip": Augment(flip=True),
    "crop-flip": Augment(scale=(0.6, 1.0), shift=0.1, flip=True),
    "pgd": Augment(scale=(0.9, 1.1), shift=0.05, rotate=10.0, hue=0.05, saturation=0.05, nearest=True),
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
        matrix = affine(u, how)
        grid = F.affine_grid(matrix, list(flat.shape), align_corners=False).to(flat)
        flat = F.grid_sample(flat, grid, mode="nearest" if how.nearest else "bilinear", align_corners=False)
    if (how.hue or how.saturation) and flat.shape[1] == 3:
        from kornia.color import hsv_to_rgb, rgb_to_hsv
        from kornia.enhance import adjust_hue_raw, adjust_saturation_raw

        # Both changes are made in HSV, so one conversion each way serves them.
        hsv = rgb_to_hsv(flat)
        hsv = adjust_hue_raw(hsv, (2 * u[:, 5] - 1) * how.hue * 2 * math.pi)
        hsv = adjust_saturation_raw(hsv, 1 + (2 * u[:, 6] - 1) * how.saturation)
        flat = hsv_to_rgb(hsv).clamp(0, 1)
    return flat.reshape(x.shape)


def affine(u: Tensor, how: Augment) -> Tensor:
    r"""The sampling matrices (B, 2, 3): output pixel p takes the input at A p + t.

    .. math::  A = s \begin{pmatrix} f\cos\theta & -\sin\theta \\ f\sin\theta & \cos\theta \end{pmatrix},
               \quad s = \sqrt{\text{area}}, \quad f = \pm 1 \text{ the flip}

    >>> affine(torch.full((1, 7), 0.5), PRESETS["none"])[0].abs().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    low, high = how.scale
    side = (low + (high - low) * u[:, 0]).sqrt()
    theta = (2 * u[:, 1] - 1) * math.radians(how.rotate)
    mirror = torch.where(u[:, 2] < 0.5, -1.0, 1.0).to(u) if how.flip else torch.ones_like(side)
    shift = 2 * how.shift * (2 * u[:, 3:5] - 1)  # the grid runs from -1 to 1
    row0 = torch.stack([side * mirror * theta.cos(), -side * theta.sin(), shift[:, 0]], 1)
    row1 = torch.stack([side * mirror * theta.sin(), side * theta.cos(), shift[:, 1]], 1)
    return torch.stack([row0, row1], 1)
