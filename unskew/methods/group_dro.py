r"""Group DRO: minimise the worst group's loss, by multiplicative weights over groups.

.. math::
    q_g \leftarrow \frac{q_g\, e^{\eta L_g}}{\sum_h q_h\, e^{\eta L_h}}, \qquad
    L(\theta) = \sum_g q_g L_g, \qquad L_g = \text{mean loss of group } g \text{ in the batch}

Source: Sagawa, Koh, Hashimoto, Liang, "Distributionally robust neural networks for group shifts", ICLR 2020, Algorithm 1.
Differs: group means over the whole batch instead of one sampled group per step, as in the authors' code. Batches are drawn
uniformly unless `train.sampler=balanced`, which the authors use for rare groups. Rows without a bias value are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts
from unskew.stats.groups import group_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDROConfig:
    eta: float = 0.01  # step size of q

    def __post_init__(self) -> None:
        if self.eta < 0:
            raise UserError("group_dro: eta must not be negative")


def exponentiated_update(q: Tensor, group_loss: Tensor, eta: float) -> Tensor:
    """One multiplicative-weights step, in log space so that large losses cannot overflow.

    >>> exponentiated_update(torch.tensor([0.5, 0.5]), torch.tensor([3.0, 3.0]), eta=1.0).tolist()
    [0.5, 0.5]
    """
    return torch.softmax(q.clamp(min=1e-30).log() + eta * group_loss, dim=0)


class GroupDRO(Method):
    Config = GroupDROConfig
    sees = frozenset({"bias"})

    q: Tensor  # (G,) weight of each group, sums to 1
    moved: Tensor  # () steps in which q was updated

    def __init__(self, cfg: GroupDROConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        assert facts.group_counts is not None  # guaranteed by `sees`
        present = (facts.group_counts > 0).float()
        self.register_buffer("q", present / present.sum())
        self.register_buffer("moved", torch.zeros((), dtype=torch.long))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        group = batch.need("group")
        known = group >= 0
        per_sample = task_loss(self.predict(batch.x), batch.y)
        if batch.weight is not None:
            per_sample = batch.weight * per_sample
        sums, counts = group_sums(per_sample[known], group[known], self.q.numel())
        # Every process has the group means of the whole batch, with gradients to its own rows.
        means = engine.global_sum_with_gradient(sums) / engine.global_sum(counts).clamp(min=1).to(sums)
        if self.training and int(self.moved) <= int(self.age):  # once per step, by the first part of an accumulated batch
            self.moved.copy_(self.age + 1)
            self.q.copy_(exponentiated_update(self.q, means.detach().to(self.q), self.cfg.eta))
        return {"robust_ce": (self.q.to(means) * means).sum()}
