r"""LISA: a row is mixed with one of its class and another bias value, or with one of its bias value and another class.

.. math::
    \tilde x_i = \lambda_i x_i + (1 - \lambda_i) x_j, \qquad
    \lambda_i \sim \mathrm{Beta}(a, a), \qquad
    L = \frac1B \sum_i \lambda_i\, \mathrm{CE}\big(f(\tilde x_i), y_i\big) + (1 - \lambda_i)\, \mathrm{CE}\big(f(\tilde x_i), y_j\big)

    j \sim \{ y_j = y_i,\ b_j \ne b_i \} \text{ with probability } p, \text{ else } \{ b_j = b_i,\ y_j \ne y_i \}

=====  =======  ====================================================================================================
p      select   decided for the whole batch
a      beta     shape of the mixing weights
=====  =======  ====================================================================================================

A row without a partner in its batch, or without a bias value, is not mixed. `train.sampler=balanced` gives rare groups partners in
every batch; the authors draw so for subpopulation shifts.

Source: Yao, Wang, Li, Zhang, Liang, Zou, Finn, "Improving out-of-distribution robustness via selective augmentation", ICML 2022;
after it, from memory.
Differs: one mixing weight per row instead of one per batch; partners come from the row's own batch. Several bias columns are one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class LISAConfig:
    select: float = 0.5  # probability of mixing within the class rather than within the bias value
    beta: float = 2.0  # shape of the mixing weights

    def __post_init__(self) -> None:
        if not 0 <= self.select <= 1 or self.beta <= 0:
            raise UserError("lisa: select must lie in [0, 1] and beta be above 0")


class LISA(Method):
    Config = LISAConfig
    sees = frozenset({"bias"})

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        if not self.training:
            return {"mixed_ce": batch.mean(task_loss(self.predict(batch.x), batch.y))}
        rows, mine = engine.shard_of_batch(len(batch.y))
        x, y, group = (engine.whole_batch(t) for t in (batch.x, batch.y, batch.need("group")))
        assert self.facts.group_counts is not None  # guaranteed by `sees`
        values = self.facts.group_counts.numel() // self.facts.num_classes
        bias = torch.where(group >= 0, group % values, -1)
        # The same draws in every process, for the whole batch.
        within_class = bool(torch.rand(()) < self.cfg.select)
        share = torch.distributions.Beta(self.cfg.beta, self.cfg.beta).sample((rows,)).to(x)
        partner = partners(y, bias, torch.rand(rows, rows, device=y.device), within_class)
        alone = partner == torch.arange(rows, device=y.device)
        share = torch.where(alone, 1.0, share)[mine]
        other = partner[mine]
        spread = share.view(-1, *[1] * (x.ndim - 1))
        logits = self.predict(spread * batch.x + (1 - spread) * x[other])
        ce = share * task_loss(logits, batch.y) + (1 - share) * task_loss(logits, y[other])
        return {"mixed_ce": batch.mean(ce)}


def partners(y: Tensor, bias: Tensor, draws: Tensor, within_class: bool) -> Tensor:
    """The row (B,) that each row is mixed with: the allowed one with the largest draw (B, B), itself if there is none.

    >>> y, b = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    >>> partners(y, b, torch.rand(3, 3), True).tolist(), partners(y, b, torch.rand(3, 3), False).tolist()
    ([1, 0, 2], [0, 2, 1])
    """
    alike, shared = y[:, None] == y, bias[:, None] == bias
    known = (bias[:, None] >= 0) & (bias >= 0)
    allowed = known & (alike & ~shared if within_class else ~alike & shared)
    best = draws.masked_fill(~allowed, -1.0).argmax(1)
    return torch.where(allowed.any(1), best, torch.arange(len(y), device=y.device))
