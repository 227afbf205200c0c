r"""frozen: a pretrained network that does not learn, and a linear last layer on its standardised features.

.. math::  z = W\, \frac{\phi(x) - m}{s} + b

phi is the last feature layer of `backbone` on images resized to `size`; m and s are the mean and standard deviation of the
training rows' features. Only W and b learn, so phi is computed once per image and cached: a training takes seconds. Inputs of one
dimension are taken as features that were computed before.

Clips: the mean of phi over the frames. Feature layer: pool.

Source: a common practice; for images with few rows see Kornblith, Shlens, Le, "Do better ImageNet models transfer better?", CVPR
2019, and for shortcuts Kirichenko, Izmailov, Wilson, "Last layer re-training is sufficient for robustness to spurious
correlations", ICLR 2023.
Differs: nothing.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Model, maker

LARGEST = 224  # pixels that the pretrained networks were trained at


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    backbone: str = "efficientnet-lite0"  # a network by name
    net: dict[str, Any] = field(default_factory=dict)  # its settings: net.weights=FILE
    size: int = 0  # side in pixels that images are resized to; 0: twice their own, at least 64 and at most 224

    def __post_init__(self) -> None:
        if self.size < 0:
            raise UserError(f"model.size={self.size}: must not be negative")


class Frozen(Model):
    mean: Tensor  # (D,) of the features
    deviation: Tensor

    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        nn.Module.__init__(self)
        if len(shape) not in (3, 4):
            raise UserError(f"model 'frozen' needs images or clips, got inputs of shape {shape}; use linear for vectors")
        self.cfg, self.side = cfg, cfg.size or min(LARGEST, max(64, 2 * min(shape[-2:])))
        self.backbone = maker(cfg.backbone, dict(cfg.net), (shape[-3], self.side, self.side), 2)().requires_grad_(False).eval()
        with torch.no_grad():
            width = self.pooled(torch.zeros(1, *shape)).shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))
        self.head = nn.Linear(width, outputs)

    @property
    def layers(self) -> tuple[str, ...]:
        return ("pool",)

    @property
    def output(self) -> nn.Module:
        return self.head

    def scale_by(self, features: Tensor) -> None:
        """Standardise by the features of the training rows; a constant one becomes 0."""
        self.mean.copy_(features.double().mean(0))
        self.deviation.copy_(features.double().std(0).clamp(min=1e-6))

    def train(self, mode: bool = True) -> "Frozen":
        super().train(mode)
        self.backbone.eval()  # its batch statistics are part of the weights
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.features(x))

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        h = x if x.ndim == 2 else self.pooled(x)
        return (h - self.mean) / self.deviation

    def after(self, h: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        logits: Tensor = self.head(h)
        return logits

    def pooled(self, x: Tensor) -> Tensor:
        """The backbone's last feature layer, before it is standardised."""
        frames = x.shape[1] if x.ndim == 5 else 1
        x = x.flatten(0, 1) if x.ndim == 5 else x
        if x.shape[-2:] != (self.side, self.side):
            x = F.interpolate(x, size=(self.side, self.side), mode="bilinear", align_corners=False, antialias=True)
        assert isinstance(self.backbone, Model)
        h = self.backbone.features(x.contiguous(memory_format=torch.channels_last))
        h = h if h.ndim == 2 else h.flatten(2).mean(2)
        return h.view(-1, frames, h.shape[1]).mean(1)
