r"""rebias-conv: ReBias's networks for Biased MNIST: four stacked convolutions, 7x7 for f, 1x1 for the biased g.

Channels 16, 32, 64, 128, stride 1, same padding, each convolution with bias, batch normalisation and ReLU; global average
pooling; one linear layer. With kernel 1 it sees single pixels: colour and nothing else.

.. math::  h_k = \max(0, \mathrm{BN}(W_k * h_{k-1} + b_k)), \qquad z = W \, \mathrm{mean}_{hw}(h_4) + b

Feature layers: conv1 to conv4, pool (128 numbers, what HSIC compares). 531,210 parameters with kernel 7, 12,810 with kernel 1.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.2 (released code).
Differs: convolutions are initialised Kaiming-normal by fan-out, as in the code. `side` bounds the cost of large images: a 1x1 network
loses nothing but repetitions. On the CPU, where it is faster, a large kernel is applied in the frequency domain, and a 1x1 network
computes equal pixels of an image once; the results are the same to rounding.
"""

import weakref
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Model, need_images
from unskew.nn import BatchNorm2d
from unskew.nn.large_kernel import LargeKernelConv2d, from_rows_last, normalise_rows_last, pays, to_rows_last
from unskew.nn.pointwise import Colours, Layer, colours, pooled, suits

Block = tuple[LargeKernelConv2d, BatchNorm2d, nn.ReLU]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    kernel: int = 7  # size of the convolutions
    channels: tuple[int, ...] = (16, 32, 64, 128)  # channels of each convolution
    side: int = 0  # a larger image is read at every so many pixels, so that at most these many are left; 0: every pixel

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise UserError(f"model.kernel={self.kernel}: must be odd, to keep the image size")
        if self.side < 0:
            raise UserError(f"model.side={self.side}: must be a number of pixels, or 0 for every pixel")


class ReBiasConv(Model):
    step: int  # between the pixels that it reads
    _last: tuple[weakref.ref[Tensor], int, Colours] | None = None  # images, their version, and their colours

    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        inner, height, width = need_images(shape, "rebias-conv")
        self.step = 1 if cfg.side == 0 else -(-max(height, width) // cfg.side)
        blocks: list[tuple[str, nn.Module]] = []
        for k, outer in enumerate(cfg.channels, 1):
            conv = LargeKernelConv2d(inner, outer, cfg.kernel, padding=cfg.kernel // 2)
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            blocks.append((f"conv{k}", nn.Sequential(conv, BatchNorm2d(outer), nn.ReLU())))
            inner = outer
        blocks.append(("pool", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())))
        super().__init__(blocks, nn.Linear(inner, outputs))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        if self.step > 1:
            x = x[..., :: self.step, :: self.step]
        stacked = [cast(Block, block) for block in list(self.blocks)[:-1]]
        chain = [Layer(conv, norm) for conv, norm, _ in stacked]
        if layer in ("", "pool") and suits(x, chain):
            found = self._colours(x)
            if found.worth(chain):
                return pooled(found, chain)
        convs = [conv for conv, _, _ in stacked]
        if not pays(x, convs):
            return super().features(x, layer)
        h = to_rows_last(x)
        for name, block in list(self.blocks.named_children())[:-1]:
            conv, norm, relu = cast(Block, block)
            h = relu(normalise_rows_last(norm, conv.rows_last(h)))
            if name == layer:
                return from_rows_last(h)
        return h.mean((0, 1))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def _colours(self, x: Tensor) -> Colours:
        """The colours of a batch; an update that runs the network twice on one batch finds them once."""
        if self._last is None or self._last[0]() is not x or self._last[1] != x._version:
            self._last = (weakref.ref(x), x._version, colours(x))
        return self._last[2]
