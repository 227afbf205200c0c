r"""Learning not to learn: features from which the bias cannot be read, by entropy and by gradient reversal.

.. math::
    \min_{f, g}\; \mathrm{CE}\big(y, g(f(x))\big) + \lambda \sum_b Q(b \mid f(x)) \log Q(b \mid f(x)), \qquad
    \min_h \max_f\; \mu\, \mathrm{CE}\big(b, h(f(x))\big)

========  ===============  ===================================================================================================
f         at               the network up to this layer (lnl-net: f); g is the rest
h         hidden, target   bias predictor on f: for a bias column (`target=label`), or for the colours of the image itself
Q         softmax of h     the entropy term does not move h
lambda    lambda_          0.01
mu        mu               0.1: the reversed gradient that reaches f; h itself learns at full weight
========  ===============  ===================================================================================================

Each step is two updates on the same batch: first loss and entropy move f and g; then the bias loss moves h, and f against it.
`target=color` needs no bias column: it predicts 8 levels of each channel at half size, places where a channel is 0 left out.
The authors start from a trained baseline, which they say is needed: `train.start=RUN`.

Source: Kim, Kim, Kim, Kim, Kim, "Learning not to learn: training deep neural networks with biased data", CVPR 2019, equations 8
and 9; released code for the order of updates and the numbers.
Differs: entropy from log-probabilities (the code's p log p is NaN where p underflows). In the second update layers behind f have
no gradient and stay; in the code's torch of 2019 they had a zero gradient and still moved by momentum and weight decay. The
learning rate of a warm start is the setting's own from the first step (the code's first epoch runs at the checkpoint's).
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
from unskew.parts.bias_heads import bias_loss, make_heads, mean_negative_entropy
from unskew.records import Batch, Facts, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class LNLConfig:
    lambda_: float = 0.01
    mu: float = 0.1
    at: str = ""  # layer that h reads: the last before the head by default
    target: Literal["label", "color"] = "label"
    hidden: tuple[int, ...] = (100,)  # of h, for labels

    def __post_init__(self) -> None:
        if self.lambda_ < 0 or self.mu < 0:
            raise UserError("lnl: lambda_ and mu must not be negative")


class LNL(Method):
    Config = LNLConfig
    sees = frozenset({"bias"})
    parts = ("task", "bias")

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
