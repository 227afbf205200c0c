r"""BlindEye: a bias predictor learns from the features, and the features learn to leave it undecided.

.. math::
    \min_{f, g}\; \mathrm{CE}\big(y, g(f(x))\big) - \alpha \frac1C \sum_c \log Q(c \mid f(x)), \qquad
    \min_h\; \mathrm{CE}\big(b, h(f(x))\big) \text{ with } f \text{ at rest}

The second term is the cross-entropy to the uniform distribution over the bias values.

Source: Alvi, Zisserman, Nellaker, "Turning a blind eye: explicit removal of biases and variation from deep neural network
embeddings", ECCV Workshops 2018; a baseline of Kim et al., CVPR 2019, whose weights are not published.
Differs: `mu` is not Alvi's; one or several bias columns, each with its own predictor; on each batch the predictor is updated first,
then the network.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.nn import GradientReversal
from unskew.parts.bias_heads import HIDDEN, bias_loss, check_hidden, make_heads, mean_confusion
from unskew.records import Batch, Facts, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindEyeConfig:
    alpha: float = 0.1  # weight of the confusion term
    mu: float = 0.0  # factor of a reversed gradient beside it: the row BlindEye+GRL of LNL; 0: none
    at: str = ""  # layer that the predictor reads; empty: the last before the head
    target: Literal["label", "color"] = "label"  # what it predicts: the bias columns, or the image's colours
    hidden: tuple[int, ...] = HIDDEN  # units of its hidden layers, for target=label

    def __post_init__(self) -> None:
        check_hidden("blind_eye", self.target, self.hidden)
        if self.alpha < 0 or self.mu < 0:
            raise UserError("blind_eye: alpha and mu must not be negative")


class BlindEye(Method):
    Config = BlindEyeConfig
    sees = frozenset({"bias"})
    parts = ("bias", "task")

    @classmethod
    def reads_inputs(cls, cfg: BlindEyeConfig) -> bool:
        return cfg.target == "color" or bool(cfg.at)

    def __init__(self, cfg: BlindEyeConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.reverse = GradientReversal(cfg.mu)
        self.h: Any = make_heads(self.model, cfg.at, cfg.target, facts, cfg.hidden)

    @classmethod
    def labels(cls, cfg: BlindEyeConfig) -> frozenset[str]:
        return cls.sees if cfg.target == "label" else frozenset()

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        return {"fg": list(self.model.parameters()), "h": list(self.h.parameters())}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        return {**update(batch, "bias", ["h", "fg"] if self.cfg.mu else ["h"]), **update(batch, "task", ["fg"])}

    def loss_bias(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        with torch.set_grad_enabled(self.cfg.mu > 0):
            f = self.reverse(self.model.features(batch.x, self.cfg.at))
        return {"bias_ce": bias_loss(self.h(f), self.h.targets(batch), batch.weight)}

    def loss_task(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        f, logits = self.model.both(batch.x, self.cfg.at)
        ce = task_loss(logits, batch.y)
        undecided = mean_confusion(self.h(f), batch.weight)
        return {"ce": batch.mean(ce), "confusion": self.cfg.alpha * undecided}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {**self.loss_bias(batch), **self.loss_task(batch)}
