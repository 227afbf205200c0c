r"""lnl-net: Learning not to learn's split network for Colored MNIST: f up to a 14x14 map, then g.

f: batch normalisation of the input, conv 5x5 to 32, ReLU, max-pool 3 stride 2, conv 3x3 to 32, ReLU (32x14x14 for 28x28 inputs).
g: conv 3x3 stride 2 to 64, ReLU, conv 3x3 to 64, ReLU, global average pooling, one linear layer.

.. math::  z = g(f(x)), \qquad f: 3 \times 28 \times 28 \to 32 \times 14 \times 14

Feature layers: f (the map the bias predictor sees), g (64 numbers).

Source: Kim et al., "Learning not to learn: training deep neural networks with biased data", CVPR 2019 (released code).
Differs: the paper has batch normalisation after every convolution, the code only one at the input; this follows the code.
Convolutions are initialised from N(0, 2 / (k^2 c_out)), as in the code.
"""

import math
from dataclasses import dataclass

from torch import nn

from unskew.models._contract import Model, need_images
from unskew.nn import BatchNorm2d


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings."""


class LNLNet(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        channels, _, _ = need_images(shape, "lnl-net", 4)
        f = nn.Sequential(
            BatchNorm2d(channels),
            nn.Conv2d(channels, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
        )
        g = nn.Sequential(
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        for part in (*f, *g):
            if isinstance(part, nn.Conv2d):
                nn.init.normal_(part.weight, 0, math.sqrt(2 / (part.kernel_size[0] ** 2 * part.out_channels)))
        super().__init__([("f", f), ("g", g)], nn.Linear(64, outputs))
