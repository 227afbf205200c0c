r"""vgg16: thirteen 3x3 convolutions in five stages and three linear layers; its early layers are a common measure of texture.

.. math::
    h_{k+1} = \max(0,\ W_k * h_k + b_k), \qquad \text{max-pooling by 2 after each stage}

State-dict keys and outputs match torchvision's. `weights` names a state-dict file (.safetensors, or .pth, opened without running
code in it), whose last layer is skipped if its number of classes differs. `normalise` scales inputs by ImageNet's mean and
standard deviation; auto does so if there are weights. `width` is the number of channels of stage 1; the linear layers have 64
times as many units.

Feature layers: conv1_1, relu1_1, conv1_2, relu1_2, pool1 and so on to pool5, then fc7. ReBias clusters textures by the Gram
matrix of relu1_2 (paper) or conv3_3 (code): `--textures layer:model=vgg16,net.weights=vgg16.pth,at=relu1_2,gram=true`.

Source: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015, configuration D.
Differs: nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Parts, need_images
from unskew.nn import Dropout
from unskew.nn.weights import input_scale, load_weights

STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))  # convolutions, and channels in units of `width`


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    width: int = 64  # channels of stage 1
    weights: str = ""  # state-dict file to start from
    normalise: Literal["auto", "none", "imagenet"] = "auto"  # scale inputs by ImageNet's mean and deviation; auto: with weights

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"model.width={self.width}: must be at least 1")


class VGG16(Parts):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        nn.Module.__init__(self)  # blocks keep torchvision's names
        inner, _, _ = need_images(shape, "vgg16", 32)
        self.scale = input_scale(cfg.normalise, cfg.weights, inner)
        modules: list[tuple[str, nn.Module]] = []
        for stage, (count, widths) in enumerate(STAGES, 1):
            for k in range(1, count + 1):
                outer = widths * cfg.width
                modules += [(f"conv{stage}_{k}", nn.Conv2d(inner, outer, 3, padding=1)), (f"relu{stage}_{k}", nn.ReLU())]
                inner = outer
            modules.append((f"pool{stage}", nn.MaxPool2d(2)))
        self._names = tuple(name for name, _ in modules)
        # torchvision calls this `features`, which is already a method of Model.
        self.convolutions = nn.Sequential(*(module for _, module in modules))
        units = 64 * cfg.width
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(inner * 49, units), nn.ReLU(), Dropout(), nn.Linear(units, units), nn.ReLU(), Dropout(), nn.Linear(units, outputs)
        )  # fmt: skip
        for module in self.convolutions:
            if isinstance(module, nn.Conv2d) and module.bias is not None:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)
        if cfg.weights:
            load_weights(self, lambda: Path(cfg.weights), head="classifier.6", rename=("features.", "convolutions."))

    @property
    def layers(self) -> tuple[str, ...]:
        return (*self._names, "fc7")

    @property
    def output(self) -> nn.Module:
        return self.classifier[6]

    def _part(self, name: str, x: Tensor) -> Tensor:
        if name == "fc7":
            hidden: Tensor = self.classifier[:6](torch.flatten(self.avgpool(x), 1))
            return hidden
        k = self._names.index(name)
        out: Tensor = self.convolutions[k](self.scale(x) if k == 0 else x)
        return out
