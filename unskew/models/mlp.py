r"""mlp: fully connected layers with ReLU, for vectors and flattened images.

.. math::  h_0 = x, \quad h_k = \max(0, W_k h_{k-1} + b_k), \quad z = W h_K + b

Feature layers: fc1, fc2, ... . The default is LfF's network for Colored MNIST; REPAIR's is `hidden=300,100`.

Source: Nam et al., "Learning from failure", NeurIPS 2020 (100-100-100); Li and Vasconcelos, CVPR 2019 (300-100).
Differs: LfF's code divides inputs in [0, 1] by 255 again; `input_scale=0.00392156862745098` does the same.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import Model
from unskew.nn import Dropout


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    hidden: tuple[int, ...] = (100, 100, 100)  # units of the hidden layers
    dropout: float = 0.0  # probability of dropping a unit
    input_scale: float = 1.0  # factor on the input
    inputs: tuple[int, ...] = ()  # positions of the input numbers it sees, to bias it by design; empty: all

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise UserError(f"model.hidden={self.hidden}: needs at least one layer of at least one unit")
        if not 0 <= self.dropout < 1:
            raise UserError(f"model.dropout={self.dropout}: must lie in [0, 1)")


class MLP(Model):
    def __init__(self, cfg: Config, shape: tuple[int, ...], outputs: int) -> None:
        if cfg.inputs and not 0 <= min(cfg.inputs) <= max(cfg.inputs) < math.prod(shape):
            raise UserError(f"model.inputs={cfg.inputs}: must lie in 0..{math.prod(shape) - 1}")
        sizes = (len(cfg.inputs) or math.prod(shape), *cfg.hidden)
        blocks: list[tuple[str, nn.Module]] = []
        for k, (inner, outer) in enumerate(pairwise(sizes)):
            first = [Scale(cfg.input_scale), nn.Flatten(), *([Pick(cfg.inputs)] if cfg.inputs else [])] if k == 0 else []
            blocks.append((f"fc{k + 1}", nn.Sequential(*first, nn.Linear(inner, outer), nn.ReLU(), Dropout(cfg.dropout))))
        super().__init__(blocks, nn.Linear(sizes[-1], outputs))


class Pick(nn.Module):
    def __init__(self, which: tuple[int, ...]) -> None:
        super().__init__()
        self.which = list(which)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.which]


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x if self.factor == 1.0 else x * self.factor
