r"""gray: colours are removed before the network sees them, in training and in evaluation.

.. math::  x'_c = \tfrac13 \sum_k x_k \quad \text{in every channel } c

A baseline that knows what the bias is. The brightness of the colours stays.

Source: a baseline of Kim et al., "Learning not to learn", CVPR 2019, section 5.2.
Differs: the plain mean of the (normalised) channels; the paper does not define its grey. Inputs that are not images are
unchanged.
"""

from dataclasses import dataclass

from torch import Tensor

from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class GrayConfig:
    """No hyperparameters."""


class Gray(Method):
    Config = GrayConfig
    multi_label = True

    @classmethod
    def reads_inputs(cls, cfg: GrayConfig) -> bool:
        return True

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        per_sample = task_loss(self.predict(batch.x), batch.y)
        return {"ce": batch.mean(per_sample)}

    def predict(self, x: Tensor) -> Tensor:
        return super().predict(x.mean(-3, keepdim=True).expand_as(x) if x.ndim >= 4 else x)
