r"""linear: one linear layer on standardised inputs, for vectors.

.. math::  z = W\, \frac{x - m}{s} + b

m and s are the mean and standard deviation of the training rows. Feature layer: input (the standardised vector).

Source: softmax regression.
Differs: nothing.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.models._contract import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings."""


class Linear(Model):
    mean: Tensor  # (D,) of the inputs
    deviation: Tensor

    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        width = math.prod(shape)
        super().__init__([("input", nn.Flatten())], nn.Linear(width, outputs))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def scale_by(self, features: Tensor) -> None:
        """Standardise by the training rows; a constant number becomes 0."""
        self.mean.copy_(features.double().mean(0))
        self.deviation.copy_(features.double().std(0).clamp(min=1e-6))

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.features(x))

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        return (x.flatten(1) - self.mean) / self.deviation
