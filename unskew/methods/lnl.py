r"""Learning not to learn: features from which the bias cannot be read, by entropy and by gradient reversal.

.. math::
    \min_{f, g}\; \mathrm{CE}\big(y, g(f(x))\big) + \lambda \sum_b Q(b \mid f(x)) \log Q(b \mid f(x)), \qquad
    \min_h \max_f\; \mu\, \mathrm{CE}\big(b, h(f(x))\big)

========  ===============  ===================================================================================================
f         at               the network up to this layer (lnl-net: f); g is the rest
h         hidden, target   bias predictor on f: of the bias columns (`target=label`) or of the image's own colours
Q         softmax of h     the entropy term does not update h
lambda    lambda_          0.01
mu        mu               0.1: the reversed gradient that reaches f; h itself learns at full weight
========  ===============  ===================================================================================================

Each step makes two updates on the same batch: loss and entropy update f and g; then the bias loss updates h, and f against it.
`target=color` needs no bias column: it predicts 8 levels of each channel at the size of the layer's map, except where a channel is
0. `mu=0` leaves the reversed gradient out: the paper's row Ours-adv.
The authors start from a trained baseline and say this is needed: `train.start=RUN`.

Source: Kim, Kim, Kim, Kim, Kim, "Learning not to learn: training deep neural networks with biased data", CVPR 2019, equations 8
and 9; released code for the order of updates and the numbers.
Differs: entropy from log-probabilities (the code's p log p is NaN where p underflows). In the second update, layers after f have
no gradient and do not change; with the torch of 2019 they had a zero gradient and still changed by momentum and weight decay. A
warm start uses the given learning rate from the first step (the code's first epoch runs at the checkpoint's).
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
from unskew.parts.bias_heads import HIDDEN, bias_loss, check_hidden, make_heads, mean_negative_entropy
from unskew.records import Batch, Facts, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class LNLConfig:
    lambda_: float = 0.01  # weight of the entropy term
    mu: float = 0.1  # factor of the reversed gradient
    at: str = ""  # layer that h reads; empty: the last before the head
    target: Literal["label", "color"] = "label"  # what h predicts: the bias columns, or the image's colours
    hidden: tuple[int, ...] = HIDDEN  # units of h's hidden layers, for target=label

    def __post_init__(self) -> None:
        check_hidden("lnl", self.target, self.hidden)
        if self.lambda_ < 0 or self.mu < 0:
            raise UserError("lnl: lambda_ and mu must not be negative")


class LNL(Method):
    Config = LNLConfig
    sees = frozenset({"bias"})
    parts = ("task", "bias")

    @classmethod
    def reads_inputs(cls, cfg: LNLConfig) -> bool:
        return cfg.target == "color" or bool(cfg.at)

    def __init__(self, cfg: LNLConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.h: Any = make_heads(self.model, cfg.at, cfg.target, facts, cfg.hidden)
        self.reverse = GradientReversal(cfg.mu)

    @classmethod
    def labels(cls, cfg: LNLConfig) -> frozenset[str]:
        return cls.sees if cfg.target == "label" else frozenset()

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        return {"fg": list(self.model.parameters()), "h": list(self.h.parameters())}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        return {**update(batch, "task", ["fg"]), **update(batch, "bias", ["fg", "h"])}

    def loss_task(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        f, logits = self.model.both(batch.x, self.cfg.at)
        ce = task_loss(logits, batch.y)
        entropy = mean_negative_entropy(self.h(f), batch.weight)
        return {"ce": batch.mean(ce), "entropy": self.cfg.lambda_ * entropy}

    def loss_bias(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        f = self.model.features(batch.x, self.cfg.at)
        return {"bias_ce": bias_loss(self.h(self.reverse(f)), self.h.targets(batch), batch.weight)}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {**self.loss_task(batch), **self.loss_bias(batch)}
