"""A user's own network, named by its module: plain torch, with the layers that several processes can get wrong."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Config:
    width: int = 16


def make(cfg, shape, outputs):
    return nn.Sequential(
        nn.Flatten(), nn.LazyLinear(cfg.width) if len(shape) > 1 else nn.Linear(shape[0], cfg.width),
        nn.BatchNorm1d(cfg.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(cfg.width, outputs),
    )  # fmt: skip
