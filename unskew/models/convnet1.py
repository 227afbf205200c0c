r"""convnet1: PGD's network for Colored and Watermarked MNIST.

Three 4x4 convolutions without padding, to 8, 32 and 64 channels, each with batch normalisation, ReLU and dropout; average
pooling by 2 after the first two, global after the third; one linear layer.

.. math::  28 \to 25 \to 12 \to 9 \to 4 \to 1, \qquad 64 \to C

Feature layers: conv1, conv2, conv3 (64 numbers). In the third block ReLU comes before the normalisation, as in the code.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, appendix; the code of
its 2023 successor.
Differs: nothing.
"""

from dataclasses import dataclass

from torch import nn

from unskew.core.errors import UserError
from unskew.models._contract import Model, need_images
from unskew.nn import BatchNorm2d, Dropout


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    dropout: float = 0.5  # probability of dropping a unit
    width: float = 1.0  # factor on the channels

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1 or self.width <= 0:
            raise UserError("model.dropout must lie in [0, 1) and model.width must be above 0")


class ConvNet1(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        channels, _, _ = need_images(shape, "convnet1", 28)
        a, b, c = (max(1, round(n * cfg.width)) for n in (8, 32, 64))
        drop = cfg.dropout
        blocks: list[tuple[str, nn.Module]] = [
            ("conv1", nn.Sequential(nn.Conv2d(channels, a, 4), BatchNorm2d(a), nn.ReLU(), Dropout(drop), nn.AvgPool2d(2))),
            ("conv2", nn.Sequential(nn.Conv2d(a, b, 4), BatchNorm2d(b), nn.ReLU(), Dropout(drop), nn.AvgPool2d(2))),
            (
                "conv3",
                nn.Sequential(
                    nn.Conv2d(b, c, 4), nn.ReLU(), BatchNorm2d(c), Dropout(drop), nn.AdaptiveAvgPool2d(1), nn.Flatten()
                ),
            ),
        ]
        super().__init__(blocks, nn.Linear(c, outputs))
