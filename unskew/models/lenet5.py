r"""lenet5: REPAIR's variant of LeNet-5.

conv 5x5 to 6, ReLU, max-pool 2; conv 5x5 to 16, ReLU, max-pool 2; fully connected 120, 84, classes.

.. math::  28 \to 24 \to 12 \to 8 \to 4, \qquad 16 \cdot 4 \cdot 4 = 256 \to 120 \to 84 \to C

Feature layers: conv1, conv2, fc1, fc2.

Source: Li and Vasconcelos, "REPAIR: removing representation bias by dataset resampling", CVPR 2019 (released code).
Differs: nothing; other image sizes change only the first fully connected layer.
"""

from dataclasses import dataclass

from torch import nn

from unskew.models._contract import Model, need_images


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings."""


class LeNet5(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        channels, height, width = need_images(shape, "lenet5", 16)
        flat = 16 * (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
        blocks: list[tuple[str, nn.Module]] = [
            ("conv1", nn.Sequential(nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.MaxPool2d(2))),
            ("conv2", nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))),
            ("fc1", nn.Sequential(nn.Flatten(), nn.Linear(flat, 120), nn.ReLU())),
            ("fc2", nn.Sequential(nn.Linear(120, 84), nn.ReLU())),
        ]
        super().__init__(blocks, nn.Linear(84, outputs))
