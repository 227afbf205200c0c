"""A user's own network for clips."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Config:
    width: int = 8


class Clip(nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.conv = nn.Conv3d(3, width, 3, padding=1)
        self.head = nn.Linear(width, outputs)

    def forward(self, x):  # (B, T, C, H, W)
        return self.head(self.conv(x.transpose(1, 2)).relu().mean((2, 3, 4)))


def make(cfg, shape, outputs):
    return Clip(cfg.width, outputs)
