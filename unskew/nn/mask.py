"""A U-Net that gives every pixel of an image a number in (0, 1): how much of it stays."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.nn import share_statistics

OPEN = 3.0  # initial value of the last bias: sigmoid(3) = 0.95 of the image stays


class Mask(nn.Module):
    """Up to five convolutions of stride 2 down, as many with bilinear steps up, skip connections; one channel, sigmoid."""

    def __init__(self, shape: tuple[int, ...], channels: tuple[int, ...]) -> None:
        super().__init__()
        if len(shape) != 3:
            raise UserError(f"at=image needs images, got inputs of shape {shape}")
        steps = max(1, min(len(channels), min(shape[1:]).bit_length() - 1))  # down to one pixel at most
        sizes = [shape[0], *channels[:steps]]
        self.down = nn.ModuleList(_block(a, b, stride=2) for a, b in pairwise(sizes))
        widths = [max(size, 16) for size in reversed(sizes[:-1])]  # on the way up, each level is as wide as its counterpart
        inputs = [sizes[-1], *(w + skip for w, skip in zip(widths, reversed(sizes[1:-1]), strict=False))]
        self.up = nn.ModuleList(_block(a, b) for a, b in zip(inputs, widths, strict=True))
        self.last = nn.Conv2d(widths[-1] + shape[0], 1, 3, padding=1)
        nn.init.constant_(self.last.bias, OPEN)  # type: ignore[arg-type]
        nn.init.normal_(self.last.weight, 0, 0.01)
        share_statistics(self)

    def forward(self, x: Tensor) -> Tensor:
        skips, h = [x], x
        for block in self.down:
            h = block(h)
            skips.append(h)
        skips.pop()
        for k, block in enumerate(self.up):
            h = block(h) if k == 0 else block(torch.cat([h, skips.pop()], 1))
            h = F.interpolate(h, size=skips[-1].shape[-2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.last(torch.cat([h, skips.pop()], 1)))


def _block(a: int, b: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(a, b, 3, stride=stride, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))
