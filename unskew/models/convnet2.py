r"""convnet2: PGD's network for the Cartoon set.

Five convolutions of sizes 6, 6, 5, 5, 4, each with batch normalisation, ReLU, dropout and average pooling by 2, global after the
last; one linear layer.

.. math::  h_k = \mathrm{pool}_2(\mathrm{drop}(\max(0, \mathrm{BN}(W_k * h_{k-1})))), \qquad z = W \, \mathrm{mean}(h_5) + b

Feature layers: conv1 to conv5.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, appendix and Figure
9.
Differs: text (five convolutions) and figure (six) disagree; this follows the text, with the figure's channels minus one of its
16s (8, 16, 16, 32, 32). Padding keeps the size, so that any image of at least 32 pixels fits; the paper does not state it.
"""

from dataclasses import dataclass

from torch import nn

from unskew.core.errors import UserError
from unskew.models._contract import Model, need_images
from unskew.nn import BatchNorm2d, Dropout


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    channels: tuple[int, ...] = (8, 16, 16, 32, 32)  # channels of each convolution
    kernels: tuple[int, ...] = (6, 6, 5, 5, 4)  # size of each convolution
    dropout: float = 0.5  # probability of dropping a unit

    def __post_init__(self) -> None:
        if len(self.channels) != len(self.kernels) or not self.channels or min(self.channels + self.kernels) < 1:
            raise UserError("model.channels and model.kernels must be lists of positive numbers of the same length")
        if not 0 <= self.dropout < 1:
            raise UserError(f"model.dropout={self.dropout}: must lie in [0, 1)")


class ConvNet2(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        inner, _, _ = need_images(shape, "convnet2", 2 ** len(cfg.channels))
        blocks: list[tuple[str, nn.Module]] = []
        for k, (outer, kernel) in enumerate(zip(cfg.channels, cfg.kernels, strict=True), 1):
            last = k == len(cfg.channels)
            pool: list[nn.Module] = [nn.AdaptiveAvgPool2d(1), nn.Flatten()] if last else [nn.AvgPool2d(2)]
            pad = nn.ZeroPad2d(((kernel - 1) // 2, kernel // 2, (kernel - 1) // 2, kernel // 2))
            layers = [pad, nn.Conv2d(inner, outer, kernel), BatchNorm2d(outer), nn.ReLU(), Dropout(cfg.dropout), *pool]
            blocks.append((f"conv{k}", nn.Sequential(*layers)))
            inner = outer
        super().__init__(blocks, nn.Linear(inner, outputs))
