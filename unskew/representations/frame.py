r"""frame: one frame of a clip, or the mean of all: what can be seen without motion.

.. math::  \phi = \text{area average on } 8 \times 8 \text{ of } x_t \ (t = 0 \text{ or } T/2), \quad \text{or of } \mathrm{mean}_t\, x_t

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2 (static bias of action data sets).
Differs: pixels instead of ImageNet features; for features of a network, use `layer`.
"""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from unskew.data.dataset import DataSet

PIXELS, CONTENT = True, False
VARIANTS = ({"which": "middle"}, {"which": "mean"})


@dataclass(frozen=True)
class Config:
    which: Literal["first", "middle", "mean"] = "middle"  # the frame to use, or the mean of all


def phrase(cfg: Config) -> str:
    return f"the {cfg.which} frame"


def applies(data: DataSet, cfg: Config) -> str:
    return "" if len(data.shape) == 4 else f"inputs of shape {data.shape} are not clips"


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    one = x.mean(1) if cfg.which == "mean" else x[:, 0 if cfg.which == "first" else x.shape[1] // 2]
    return F.adaptive_avg_pool2d(one, 8).flatten(1)
