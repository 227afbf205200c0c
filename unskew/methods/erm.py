r"""Empirical risk minimisation: the mean loss, nothing else. The baseline of every comparison.

.. math::  L(\theta) = \frac1B \sum_i w_i \, \ell\big(f_\theta(x_i), y_i\big)

=====  ============  =====================================================================
w_i    batch.weight  1, or the sample's weight in a repair table (mean 1)
l      task_loss     cross-entropy; mean binary cross-entropy for several labels per row
=====  ============  =====================================================================

`class_weights=true` weighs the loss of a class, or both terms of a label, by (rows without it) / (rows with it), as the code of Wang
et al., "Balanced datasets are not enough" (2019).

Source: Vapnik, "Principles of risk minimization for learning theory", NeurIPS 1991.
Differs: nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ERMConfig:
    class_weights: bool = False  # weigh each class or label by #without / #with


class ERM(Method):
    Config = ERMConfig
    multi_label = True

    label_weight: Tensor  # (L,)

    def __init__(self, cfg: ERMConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.register_buffer("label_weight", facts.label_weight, persistent=False)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        per_sample = task_loss(self.predict(batch.x), batch.y, self.label_weight if self.cfg.class_weights else None)
        return {"ce": batch.mean(per_sample)}
