"""Images and clips without one of the things that a model may rely on, and a random change of the same size to compare with.

Inputs are (B, C, H, W) images or (B, T, C, H, W) clips in [0, 1].
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

RIM = 8  # the border is one part in so many of a side
TILES = 4  # patches along a side
COARSE = 4  # low-passed images keep one number where there were so many along a side

Change = Callable[[Tensor, torch.Generator], Tensor]


def grey(x: Tensor, generator: torch.Generator) -> Tensor:
    """The mean over channels, in every channel."""
    return x.mean(-3, keepdim=True).expand_as(x)


def remixed(x: Tensor, generator: torch.Generator) -> Tensor:
    """The channels of every row in another order, the same for all its pixels: other colours, the same edges."""
    turn = 1 + torch.randint(0, x.shape[-3] - 1, (len(x),), generator=generator)
    order = (torch.arange(x.shape[-3]) + turn[:, None]) % x.shape[-3]
    rows = torch.arange(len(x))[:, None]
    return x.movedim(-3, 1)[rows, order].movedim(1, -3)


def without_border(x: Tensor, generator: torch.Generator) -> Tensor:
    """The border filled with the row's mean colour."""
    return torch.where(_rim(x), x.mean((-2, -1), keepdim=True), x)


def without_centre(x: Tensor, generator: torch.Generator) -> Tensor:
    """The middle half of each side filled with the row's mean colour."""
    height, width = x.shape[-2:]
    inside = torch.zeros(height, width, dtype=torch.bool)
    inside[height // 4 : height - height // 4, width // 4 : width - width // 4] = True
    return torch.where(inside, x.mean((-2, -1), keepdim=True), x)


def low_passed(x: Tensor, generator: torch.Generator) -> Tensor:
    """Without fine detail: shrunk and enlarged again."""
    height, width = x.shape[-2:]
    flat = x.reshape(-1, *x.shape[-3:])
    small = F.interpolate(flat, size=(max(2, height // COARSE), max(2, width // COARSE)), mode="bilinear", antialias=True)
    return F.interpolate(small, size=(height, width), mode="bilinear").view_as(x)


def shuffled_patches(x: Tensor, generator: torch.Generator) -> Tensor:
    """Patches in random order, the same in all frames of a clip: colours and texture stay, the arrangement goes.

    What is left of a side that the patches do not divide stays where it is.
    """
    high, wide = x.shape[-2] // TILES, x.shape[-1] // TILES
    if not high or not wide:
        return x
    lead = x.shape[:-2]
    inner = x[..., : high * TILES, : wide * TILES].reshape(*lead, TILES, high, TILES, wide)
    patches = inner.movedim(-2, -3).reshape(*lead, TILES * TILES, high, wide).movedim(-3, 1)
    order = torch.rand(len(x), TILES * TILES, generator=generator).argsort(1)
    patches = patches[torch.arange(len(x))[:, None], order].movedim(1, -3)
    mixed = patches.reshape(*lead, TILES, TILES, high, wide).movedim(-3, -2).reshape_as(inner)
    out = x.clone()
    out[..., : high * TILES, : wide * TILES] = mixed.reshape(*lead, high * TILES, wide * TILES)
    return out


def shuffled_frames(x: Tensor, generator: torch.Generator) -> Tensor:
    """Frames in random order."""
    order = torch.rand(len(x), x.shape[1], generator=generator).argsort(1)
    return x[torch.arange(len(x))[:, None], order]


def frozen_frames(x: Tensor, generator: torch.Generator) -> Tensor:
    """The middle frame all the time."""
    return x[:, x.shape[1] // 2 : x.shape[1] // 2 + 1].expand_as(x)


def same_energy(x: Tensor, altered: Tensor, generator: torch.Generator) -> Tensor:
    r"""A random change of the same size: the differences of each row at random places with random signs.

    .. math::  x' = x + \epsilon \odot \pi(\tilde x - x), \qquad \lVert x' - x \rVert = \lVert \tilde x - x \rVert

    >>> x, y = torch.zeros(1, 1, 2, 2), torch.tensor([[[[3.0, 0.0], [0.0, 4.0]]]])
    >>> float(same_energy(x, y, torch.Generator()).norm())
    5.0
    """
    change = (altered - x).flatten(1)
    order = torch.rand(change.shape, generator=generator).argsort(1)
    sign = 2.0 * torch.randint(0, 2, change.shape, generator=generator) - 1
    return x + (change.gather(1, order) * sign.to(change.dtype)).view_as(x)


def _rim(x: Tensor) -> Tensor:
    """(H, W) whether a pixel is in the border."""
    height, width = x.shape[-2:]
    inside = torch.ones(height, width, dtype=torch.bool)
    down, across = max(1, height // RIM), max(1, width // RIM)
    inside[down : height - down, across : width - across] = False
    return inside


IMAGES: dict[str, Change] = {
    "grey": grey,
    "colours": remixed,
    "border": without_border,
    "centre": without_centre,
    "detail": low_passed,
    "arrangement": shuffled_patches,
}
CLIPS: dict[str, Change] = {"order": shuffled_frames, "motion": frozen_frames}


def changes_for(shape: tuple[int, ...]) -> dict[str, Change]:
    """The changes that make sense for inputs of this shape: (C, H, W) or (T, C, H, W)."""
    if len(shape) not in (3, 4):
        return {}
    found = {name: f for name, f in IMAGES.items() if shape[-3] > 1 or name not in ("grey", "colours")}
    return found | (CLIPS if len(shape) == 4 and shape[0] > 1 else {})
