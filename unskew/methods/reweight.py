r"""reweight: every (class, bias) group has the same total weight.

.. math::  L(\theta) = \frac1B \sum_i \frac{N}{G\, n_{g(i)}}\, \mathrm{CE}_i, \qquad n_g \text{ the training rows of group } g

G is the number of groups that have rows. Rows without a bias value have weight 1.

Source: classic importance weighting; the baseline of Sagawa et al., ICLR 2020, section 3.2.
Differs: nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReweightConfig:
    """No hyperparameters."""


class Reweight(Method):
    Config = ReweightConfig
    sees = frozenset({"bias"})

    group_weight: Tensor  # (G,), 0 for a group without rows

    def __init__(self, cfg: ReweightConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        assert facts.group_counts is not None  # guaranteed by `sees`
        n = facts.group_counts.double()
        self.register_buffer("group_weight", torch.where(n > 0, n.sum() / ((n > 0).sum() * n.clamp(min=1)), 0.0).float())

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        group = batch.need("group")
        weight = torch.where(group >= 0, self.group_weight[group.clamp(min=0)], 1.0)
        per_sample = weight * task_loss(self.predict(batch.x), batch.y)
        return {"ce": batch.mean(per_sample)}
