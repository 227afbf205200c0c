r"""resnet: residual networks for images and clips, and limited variants: BagNet (sees texture) and 2-D (sees single frames).

.. math::
    h_{k+1} = \max\big(0,\ h_k + F_k(h_k)\big), \qquad z = W\, \mathrm{mean}_{hw(t)}(h_L) + b

===============  ======  =========================================================================================================
kind             sees    what it is
===============  ======  =========================================================================================================
resnet           435     ResNet-18 or -50 (`depth`); state-dict keys and outputs match torchvision's
bagnet           43      the same stem, pooling and stage 1, with every 3x3 of stages 2 to 4 made 1x1: sees texture, not shape
bagnet-released  5       as in the released code: 1x1 and 3x3 stem, one 3x3 in stage 1, 1x1 elsewhere, strides 2 2 2 1, no padding
3d               19 t    clips (frames, 3, h, w): kernels of 3 frames in the stem and in the first convolution of every block
2d               1 t     the same on single frames, averaged over time: cannot see motion
difference       2 t     2d on differences of neighbouring frames: sees what moves, not what stands still (TSN on RGB differences)
===============  ======  =========================================================================================================

"Sees" is the receptive field at depth 18, in pixels or, with t, in frames (computed by `unskew.models.receptive_field`). `width`
is the number of channels of stage 1, doubled in each later stage; `weights` names a state-dict file (.safetensors, or .pth,
opened without running code in it), whose last layer is skipped if its number of classes differs. A network of clips takes the weights
of one of images: each kernel is repeated over its frames and divided by their number (inflated, as in I3D), so that it starts
without a sense of time: clips and their reversals have the same features. The mean over time before the linear layer is TSN's
consensus over segments, with every frame a segment. `normalise` scales inputs by ImageNet's mean and standard deviation; auto does
so if there are weights.

Feature layers: stem, layer1 to layer4, pool.

Source: He et al., "Deep residual learning for image recognition", CVPR 2016; Brendel and Bethge, "Approximating CNNs with
bag-of-local-features models", ICLR 2019; Bahng et al., "Learning de-biased representations with biased representations", ICML
2020, Table A2; Wang et al., "Temporal segment networks", ECCV 2016.
Differs: BagNet-18 is not fully specified anywhere: kind=bagnet has the receptive field that ReBias states, kind=bagnet-released
that of the code (5, not 43). Table A2 prints 32 channels in all stages of 2D-ResNet-18; here they double as in the 3-D network.
Clips keep all their frames: no stride in time.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Parts
from unskew.nn import BatchNorm2d, BatchNorm3d
from unskew.nn.weights import input_scale, load_weights

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    kind: Literal["resnet", "bagnet", "bagnet-released", "3d", "2d", "difference"] = "resnet"  # see the table above
    depth: int = 18  # 18, or 50 for all but BagNets
    width: int = 64  # channels of stage 1, doubled in each later stage
    weights: str = ""  # state-dict file to start from
    normalise: Literal["auto", "none", "imagenet"] = "auto"  # scale inputs by ImageNet's mean and deviation; auto: with weights

    def __post_init__(self) -> None:
        if self.depth not in BLOCKS:
            raise UserError(f"model.depth={self.depth}: must be 18 or 50")
        if self.depth == 50 and self.kind.startswith("bagnet"):
            raise UserError(f"model.kind={self.kind} is only available with model.depth=18")
        if self.width < 1:
            raise UserError(f"model.width={self.width}: must be at least 1")

    @property
    def clips(self) -> bool:
        return self.kind in ("3d", "2d", "difference")


def convolution(cfg: Config, inner: int, outer: int, kernel: int, stride: int = 1, frames: int = 1) -> nn.Module:
    """A convolution without bias; padding keeps the size up to the stride, except for bagnet-released, which has none."""
    pad = 0 if cfg.kind == "bagnet-released" else kernel // 2
    if not cfg.clips:
        return nn.Conv2d(inner, outer, kernel, stride, pad, bias=False)
    frames = frames if cfg.kind == "3d" else 1
    return nn.Conv3d(inner, outer, (frames, kernel, kernel), (1, stride, stride), (frames // 2, pad, pad), bias=False)


class Block(nn.Module):
    """Two convolutions and a skip connection."""

    growth = 1

    def __init__(self, cfg: Config, inner: int, outer: int, stride: int, kernels: tuple[int, int]) -> None:
        super().__init__()
        norm = BatchNorm3d if cfg.clips else BatchNorm2d
        self.conv1, self.bn1 = convolution(cfg, inner, outer, kernels[0], stride, frames=3), norm(outer)
        self.relu = nn.ReLU()
        self.conv2, self.bn2 = convolution(cfg, outer, outer, kernels[1]), norm(outer)
        self.downsample = _around(cfg, inner, outer, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        summed: Tensor = self.relu(_cropped(self.downsample(x), out) + out)
        return summed


class Bottleneck(nn.Module):
    """1x1 down, 3x3, 1x1 up to four times the channels; the 3x3 has the stride, as in torchvision."""

    growth = 4

    def __init__(self, cfg: Config, inner: int, outer: int, stride: int, kernels: tuple[int, int]) -> None:
        super().__init__()
        norm = BatchNorm3d if cfg.clips else BatchNorm2d
        self.conv1, self.bn1 = convolution(cfg, inner, outer, 1, frames=3), norm(outer)
        self.conv2, self.bn2 = convolution(cfg, outer, outer, kernels[0], stride), norm(outer)
        self.conv3, self.bn3 = convolution(cfg, outer, outer * self.growth, 1), norm(outer * self.growth)
        self.relu = nn.ReLU()
        self.downsample = _around(cfg, inner, outer * self.growth, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        summed: Tensor = self.relu(self.downsample(x) + self.bn3(self.conv3(out)))
        return summed


def _around(cfg: Config, inner: int, outer: int, stride: int) -> nn.Sequential:
    if stride == 1 and inner == outer:
        return nn.Sequential()
    norm = BatchNorm3d if cfg.clips else BatchNorm2d
    return nn.Sequential(convolution(cfg, inner, outer, 1, stride), norm(outer))


def _cropped(x: Tensor, like: Tensor) -> Tensor:
    """Without padding, the skip connection is larger by the edge that a 3x3 loses."""
    return x[..., : like.shape[-2], : like.shape[-1]]


class ResNet(Parts):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        nn.Module.__init__(self)  # blocks keep torchvision's names
        channels = _check_shape(cfg, shape)
        width, block = cfg.width, Block if cfg.depth == 18 else Bottleneck
        released = cfg.kind == "bagnet-released"
        norm = BatchNorm3d if cfg.clips else BatchNorm2d
        if released:
            self.conv1: nn.Module = nn.Sequential(convolution(cfg, channels, width, 1), convolution(cfg, width, width, 3))
            self.maxpool: nn.Module = nn.Identity()
        else:
            self.conv1 = convolution(cfg, channels, width, 7, 2, frames=3)
            self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)) if cfg.clips else nn.MaxPool2d(3, 2, 1)
        self.bn1, self.relu = norm(width), nn.ReLU()
        inner = width
        for stage, count in enumerate(BLOCKS[cfg.depth], 1):
            outer = width * 2 ** (stage - 1)
            first_stride = (2, 2, 2, 1)[stage - 1] if released else (1, 2, 2, 2)[stage - 1]
            blocks = []
            for k in range(count):
                blocks.append(block(cfg, inner, outer, first_stride if k == 0 else 1, kernels(cfg, stage, k)))
                inner = outer * block.growth
            self.add_module(f"layer{stage}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool3d(1) if cfg.clips else nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inner, outputs)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Conv3d)):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        self.scale, self.clips = input_scale(cfg.normalise, cfg.weights, channels), cfg.clips
        self.of_differences = cfg.kind == "difference"
        if cfg.weights:
            load_weights(self, lambda: Path(cfg.weights), head="fc")

    @property
    def layers(self) -> tuple[str, ...]:
        return ("stem", "layer1", "layer2", "layer3", "layer4", "pool")

    @property
    def output(self) -> nn.Module:
        return self.fc

    def _part(self, name: str, x: Tensor) -> Tensor:
        if name == "stem":
            return self._stem(x)
        if name == "pool":
            return torch.flatten(self.avgpool(x), 1)
        out: Tensor = self.get_submodule(name)(x)
        return out

    def _stem(self, x: Tensor) -> Tensor:
        x = self.scale(x)
        if self.of_differences:
            x = x.diff(dim=1)
        if self.clips:
            x = x.transpose(1, 2)  # convolutions expect channels before frames
        out: Tensor = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return out


def kernels(cfg: Config, stage: int, block: int) -> tuple[int, int]:
    """Sizes of a block's two convolutions, which define a BagNet."""
    if cfg.kind == "bagnet":
        return (3, 3) if stage == 1 else (1, 1)
    if cfg.kind == "bagnet-released":
        return (3, 1) if (stage, block) == (1, 0) else (1, 1)
    return (3, 3)


def _check_shape(cfg: Config, shape: tuple[int, ...]) -> int:
    wanted, dims = ("clips (frames, channels, height, width)", 4) if cfg.clips else ("images", 3)
    least = 16 if cfg.kind == "bagnet-released" else 8
    if len(shape) != dims or min(shape[-2:]) < least:
        raise UserError(
            f"model 'resnet' of kind {cfg.kind} needs {wanted} of at least {least}x{least} pixels, got inputs of shape {shape}"
        )
    if cfg.kind == "difference" and shape[0] < 2:
        raise UserError(f"model.kind=difference needs clips of at least 2 frames, got inputs of shape {shape}")
    return shape[-3]
