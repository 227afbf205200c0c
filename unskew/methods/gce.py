r"""gce: a network made to take the shortcut. The biased model of LfF and PGD, which scores rows for `repair --with gradients`.

.. math::  L(\theta) = \frac1B \sum_i w_i \frac{1 - p_\theta(y_i \mid x_i)^q}{q}

The gradient is p^q times that of cross-entropy: easy rows, those the shortcut predicts, weigh most.

Source: Zhang and Sabuncu, "Generalized cross entropy loss for training deep neural networks with noisy labels", NeurIPS 2018;
Nam et al., "Learning from failure", NeurIPS 2020, for this use.
Differs: nothing. `scaled=true` is the q p^q CE of the released code, whose gradient is q = 0.7 times as long.
"""

from dataclasses import dataclass

from torch import Tensor

from unskew.core.errors import UserError
from unskew.losses import gce
from unskew.methods._contract import Method
from unskew.records import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class GCEConfig:
    q: float = 0.7  # exponent of GCE
    scaled: bool = False  # use the loss of the released code

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise UserError(f"method.q={self.q}: must lie in (0, 1]")


class GCE(Method):
    Config = GCEConfig

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        per_sample = gce(self.predict(batch.x), batch.y, self.cfg.q, scaled=self.cfg.scaled)
        return {"gce": batch.mean(per_sample)}
