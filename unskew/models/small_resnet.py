r"""small-resnet: a residual network for small images, trained from scratch in a minute on a CPU.

.. math::
    h_{k+1} = \max\big(0,\ h_k + F_k(h_k)\big), \qquad z = W\, \mathrm{mean}_{hw}(h_3) + b

A 3x3 stem, three stages of one block (two 3x3 convolutions) with `width`, 2 and 4 times as many channels, each stage at half the
resolution of the one before, and the mean over pixels. The stem halves images of 16 pixels and more, so that maps of digits start
at 14x14, and quarters those of 48 and more. Inputs are standardised by their own batch statistics. 77,000 parameters at width 16.

Feature layers: stem, stage1 to stage3, pool.

Source: He et al., "Deep residual learning for image recognition", CVPR 2016, made small.
Differs: one block per stage, and normalised inputs.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Model, need_images
from unskew.nn import BatchNorm2d


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    width: int = 16  # channels of the first stage, doubled in each later one

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"model.width={self.width}: must be at least 1")


class Block(nn.Module):
    """Two convolutions and a skip connection."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), BatchNorm2d(outer)
        self.conv2, self.norm2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), BatchNorm2d(outer)
        self.relu = nn.ReLU()
        same = stride == 1 and inner == outer
        self.around = (
            nn.Sequential() if same else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), BatchNorm2d(outer))
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        out: Tensor = self.relu(self.around(x) + h)
        return out


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class SmallResNet(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        channels, height, across = need_images(shape, "small-resnet", 4)
        width, side = cfg.width, min(height, across)
        stem = [BatchNorm2d(channels, affine=False), nn.Conv2d(channels, width, 3, 2 if side >= 16 else 1, 1, bias=False)]
        stem += [BatchNorm2d(width), nn.ReLU(), *([nn.MaxPool2d(3, 2, 1)] if side >= 48 else [])]
        blocks: list[tuple[str, nn.Module]] = [("stem", nn.Sequential(*stem))]
        for stage in range(3):
            inner, outer = width * 2 ** max(stage - 1, 0), width * 2**stage
            blocks.append((f"stage{stage + 1}", Block(inner, outer, 1 if stage == 0 else 2)))
        super().__init__([*blocks, ("pool", Mean())], nn.Linear(4 * width, outputs))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
