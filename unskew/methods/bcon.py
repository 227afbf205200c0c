r"""bcon: rows of one class with different bias values are drawn together (bias-contrastive), on logits that know the bias's prior.

.. math::
    L = \frac1B \sum_i \mathrm{CE}\big(z_i + \log \hat P(\cdot \mid b_i),\ y_i\big) + \frac{\alpha}{B} \sum_i \ell_i, \qquad
    \ell_i = \frac{-1}{|P_i|} \sum_{j \in P_i} \log \frac{e^{u_i \cdot u_j / \tau}}{\sum_{k \in A_i} e^{u_i \cdot u_k / \tau}}

    P_i = \{ j \ne i : y_j = y_i,\ b_j \ne b_i \}, \qquad A_i = \{ k \ne i \} \ \text{ or }\ P_i \cup \{ k : y_k \ne y_i,\ b_k = b_i \}

=====  ============  ============================================================================================================
u      projection    the last features through a linear, ReLU, linear projection, of length 1
P^     prior         share of each class among the training rows with this bias value (`balanced`); not added when predicting
b      bias          the bias columns, or the column `opinion` of a table that `opinion` names: then no bias labels are seen
A_i    negatives     all other rows, or (`same`) only the positives and rows of other classes with the same bias value
=====  ============  ============================================================================================================

A row without a positive in its batch has no contrastive term; a row without a bias value has neither that nor a prior.

Source: Hong and Yang, "Unbiased classification through bias-contrastive and bias-balanced learning", NeurIPS 2021, sections 3.2 and
3.3, and the authors' code (tau 0.07, projection to 128).
Differs: one view of each row, the batch's own augmentation; one batch for both terms where the code draws another, with rows weighted
against the bias, for the contrastive term.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import bias_contrastive, task_loss
from unskew.methods._contract import Method
from unskew.parts.second import features_and_logits
from unskew.records import Batch, Facts, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class BConConfig:
    alpha: float = 0.1  # weight of the contrastive term
    temperature: float = 0.07  # tau
    balanced: bool = True  # add the log prior of the classes given the bias value in training
    negatives: Literal["all", "same"] = "all"  # same: only rows of other classes with the same bias value
    projection: int = 128  # width of u; 0: the features themselves
    opinion: str = ""  # a table with the column opinion, by sample id, instead of the bias columns

    def __post_init__(self) -> None:
        if self.alpha < 0 or self.temperature <= 0 or self.projection < 0:
            raise UserError("bcon: alpha and projection must not be negative and temperature must be above 0")


class BCon(Method):
    Config = BConConfig
    sees = frozenset({"bias"})

    said: Tensor  # (N,) opinion by sample id, -1 where the table has no row; empty without a table
    prior: Tensor  # (G, C) log share of each class, by bias value

    @classmethod
    def labels(cls, cfg: BConConfig) -> frozenset[str]:
        return frozenset() if cfg.opinion else cls.sees

    def __init__(self, cfg: BConConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        said = _opinions(cfg.opinion, facts) if cfg.opinion else torch.zeros(0, dtype=torch.long)
        self.register_buffer("said", said)
        self.register_buffer("prior", torch.zeros(0, facts.num_classes))
        if facts.group_counts is not None:
            counts = facts.group_counts.view(facts.num_classes, -1).T
            self.prior = log_prior(counts)
        width = _width(self.model, facts)
        wide = cfg.projection
        self.project = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, wide)) if wide else nn.Identity()

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        if len(self.said) and not bool((self.said >= 0).any()):
            raise UserError(f"bcon: opinion={self.cfg.opinion} is not a table of opinions: no such file, or no rows")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, logits = features_and_logits(self.model, batch.x)
        bias = self._bias(batch)
        if self.cfg.balanced and len(self.prior):
            shift = torch.where(bias[:, None] >= 0, self.prior[bias.clamp(min=0)].to(logits), 0.0)
            logits = logits + shift
        terms = {"ce": batch.mean(task_loss(logits, batch.y))}
        # Rows are compared with the whole batch, over all processes.
        u, y, b = (engine.whole_batch(t) for t in (F.normalize(self.project(h), dim=1), batch.y, bias))
        per_row = bias_contrastive(u, y, b, self.cfg.temperature, same=self.cfg.negatives == "same")
        weight = None if batch.weight is None else engine.whole_batch(batch.weight)
        terms["contrast"] = self.cfg.alpha * (per_row if weight is None else weight * per_row).mean()
        return terms

    def _bias(self, batch: Batch) -> Tensor:
        """(B,) one code for all bias columns, or the opinion."""
        if len(self.said):
            return self.said[batch.index]
        group = batch.need("group")
        values = self.prior.shape[0]
        return torch.where(group >= 0, group % values, -1)


def log_prior(counts: Tensor) -> Tensor:
    """(V, C) log share of each class among the rows of each bias value; a value without rows has none.

    >>> log_prior(torch.tensor([[3.0, 1.0], [0.0, 0.0]])).exp().tolist()
    [[0.75, 0.25], [1.0, 1.0]]
    """
    total = counts.sum(1, keepdim=True)
    share = counts / total.clamp(min=1)
    return torch.where(total > 0, (share + 1e-9).log(), 0.0).float()


def _opinions(path: str, facts: Facts) -> Tensor:
    """(N,) from the table; all -1 if it is gone: a finished run has them in its own state, and a new one refuses to begin."""
    if not Path(path).is_file():
        return torch.full((facts.size,), -1)
    table = Table.read(Path(path))
    index = table.index
    if len(index) and int(index.max()) >= facts.size:
        raise UserError(f"opinion={path} has a row for sample {int(index.max())}, but the data has samples 0 to {facts.size - 1}")
    said = torch.full((facts.size,), -1)
    said[index] = table.column("opinion").long()
    return said


def _width(model: nn.Module, facts: Facts) -> int:
    model.eval()
    with torch.no_grad():
        width = features_and_logits(model, torch.zeros(2, *facts.shape))[0].shape[1]
    model.train()
    return int(width)
