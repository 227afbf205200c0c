r"""Empirical risk minimisation: the mean loss, nothing else. The baseline of every comparison.

.. math::  L(\theta) = \frac1B \sum_i w_i \, \ell\big(f_\theta(x_i), y_i\big)

=====  ============  =====================================================================
w_i    batch.weight  1, unless a repair table gives the sample another weight (mean 1)
l      task_loss     cross-entropy; mean binary cross-entropy for several labels per row
=====  ============  =====================================================================

Source: Vapnik, "Principles of risk minimization for learning theory", NeurIPS 1991.
Differs: nothing.
"""

from dataclasses import dataclass

from torch import Tensor

from unskew.losses import task_loss
from unskew.methods._base import Method
from unskew.records import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ERMConfig:
    """No hyperparameters."""


class ERM(Method):
    Config = ERMConfig
    multi_label = True

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        per_sample = task_loss(self.predict(batch.x), batch.y)
        return {"ce": batch.mean(per_sample)}
