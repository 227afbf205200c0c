"""Pictures without one of the things that may give their class away, as a model that must not use it sees them.

Inputs are images (B, C, H, W) or clips (B, T, C, H, W) in [0, 1]. In training the method `neutralise` shows them with random draws;
`without` is the form without draws, for evaluation and for a trial on features.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

REMOVES: dict[str, Literal["color", "border", "low_pass", "still"]] = {  # representation: what removes it
    "color": "color",
    "crop": "border",
    "texture": "low_pass",
    "spectrum": "low_pass",
    "frame": "still",
}
SQUARES = (2, 3, 4)  # pixels


def remixed(x: Tensor, draws: Tensor | None) -> Tensor:
    r"""Images or clips (B, ..., C, H, W) in [0, 1] as one grey picture in all channels, stretched to [0, 1].

    .. math::  g = \sum_c a_c x_c, \qquad a_c = \frac{\log u_c}{\sum_k \log u_k}, \qquad x'_c = \frac{g - \min g}{\max g - \min g}

    a is uniform over the simplex if the draws u are uniform; without draws, equal. A picture of one colour becomes 0.

    >>> red = torch.tensor([[0.0, 0.4]]).view(1, 1, 1, 2) * torch.tensor([1.0, 0.5, 0.0]).view(1, 3, 1, 1)
    >>> remixed(red, None).flatten().tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """
    if draws is None:
        share = x.new_full((len(x), x.shape[-3]), 1 / x.shape[-3])
    else:
        logs = draws.clamp(min=1e-6).log()
        share = logs / logs.sum(1, keepdim=True).clamp(max=-1e-6)
    share = share.view(len(x), *[1] * (x.ndim - 4), -1, 1, 1)
    grey = (share * x).sum(-3, keepdim=True)
    flat = grey.flatten(1)
    shape = (-1, *[1] * (x.ndim - 1))
    low, high = flat.amin(1).view(shape), flat.amax(1).view(shape)
    return ((grey - low) / (high - low).clamp(min=1e-6)).expand_as(x)


def masked(x: Tensor, fill: Tensor, where: str, share: float = 0.125) -> Tensor:
    """Images or clips with their border, or their inner half, filled with one colour (B, C) per row.

    >>> masked(torch.zeros(1, 1, 4, 4), torch.ones(1, 1), "border", 0.25).sum().item()
    12.0
    """
    height, width = x.shape[-2:]
    inside = torch.zeros(height, width, dtype=torch.bool, device=x.device)
    cut = share if where == "border" else 0.25
    down, across = max(1, round(cut * height)), max(1, round(cut * width))
    inside[down : height - down, across : width - across] = True
    colour = fill.view(len(x), *[1] * (x.ndim - 4), -1, 1, 1)
    return torch.where(inside if where == "border" else ~inside, x, colour)


def low_pass(x: Tensor, square: int) -> Tensor:
    """Images or clips averaged over squares of this many pixels, and enlarged again.

    >>> low_pass(torch.tensor([[0.0, 1.0], [1.0, 0.0]]).view(1, 1, 2, 2), 2).flatten().tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    flat = x.flatten(0, 1) if x.ndim == 5 else x
    side = max(1, x.shape[-2] // square), max(1, x.shape[-1] // square)
    small = F.adaptive_avg_pool2d(flat, side)
    return F.interpolate(small, size=x.shape[-2:], mode="bilinear", align_corners=False).view_as(x)


def without(x: Tensor, what: str, share: float = 0.125) -> Tensor:
    """The pictures without `what`, which is color, border, center, low_pass or still; `share` is that of the border."""
    if what == "still":
        return x - x.mean(1, keepdim=True)
    if what == "low_pass":
        return low_pass(x, SQUARES[1])
    if what == "color":
        return remixed(x, None)
    return masked(x, x.new_full((len(x), x.shape[-3]), 0.5), what, share)
