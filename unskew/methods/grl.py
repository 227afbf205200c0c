r"""Gradient reversal alone: network and bias predictor descend together, with the gradient reversed between them.

.. math::
    L = \mathrm{CE}\big(y, g(f(x))\big) + \mathrm{CE}\big(b, h(R_\mu(f(x)))\big), \qquad R_\mu(v) = v, \quad \nabla R_\mu = -\mu I

Source: Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation", ICML 2015; only the third term of Kim et al.,
CVPR 2019, who compare with it.
Differs: mu is constant (Ganin's rises from 0 to 1); 0.1 as for lnl.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.nn import GradientReversal
from unskew.parts.bias_heads import HIDDEN, bias_loss, check_hidden, make_heads
from unskew.records import Batch, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class GRLConfig:
    mu: float = 0.1  # factor of the reversed gradient
    at: str = ""  # layer that the predictor reads; empty: the last before the head
    target: Literal["label", "color"] = "label"  # what it predicts: the bias columns, or the image's colours
    hidden: tuple[int, ...] = HIDDEN  # units of its hidden layers, for target=label

    def __post_init__(self) -> None:
        check_hidden("grl", self.target, self.hidden)
        if self.mu < 0:
            raise UserError("grl: mu must not be negative")


class GRL(Method):
    Config = GRLConfig
    sees = frozenset({"bias"})

    @classmethod
    def reads_inputs(cls, cfg: GRLConfig) -> bool:
        return cfg.target == "color" or bool(cfg.at)

    def __init__(self, cfg: GRLConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.h: Any = make_heads(self.model, cfg.at, cfg.target, facts, cfg.hidden)
        self.reverse = GradientReversal(cfg.mu)

    @classmethod
    def labels(cls, cfg: GRLConfig) -> frozenset[str]:
        return cls.sees if cfg.target == "label" else frozenset()

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        f, logits = self.model.both(batch.x, self.cfg.at)
        ce = task_loss(logits, batch.y)
        bias_ce = bias_loss(self.h(self.reverse(f)), self.h.targets(batch), batch.weight)
        return {"ce": batch.mean(ce), "bias_ce": bias_ce}
