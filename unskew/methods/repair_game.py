r"""REPAIR with a network as its reader: the network learns to read the class, and row weights learn to leave it nothing to read.

.. math::
    \min_\omega \max_\theta\ V = 1 - \frac{\sum_i w_i \log P_\theta(y_i \mid x_i)}{\sum_i w_i \log p_{y_i}}, \qquad
    p_c = \frac{\sum_{i: y_i = c} w_i}{\sum_i w_i}, \qquad w_i = \sigma(\omega_i)

=======  ============  ==========================================================================================
theta    --model       minimises the mean of w_i / mean(w) CE_i over the batch, by the run's optimiser
omega    lr_weights    one number per row, starts at 0, plain SGD on V of the batch; a buffer of the run
p        -             from the weights of all training rows
=======  ============  ==========================================================================================

Its network is not debiased: it reads whatever it can. The method `repair` trains one on the rows these weights keep.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, whose REPAIR baseline
has an image network instead of the linear reader of Li and Vasconcelos, CVPR 2019.
Differs: the learning rate of that baseline's weights is not published; lr_weights is that of REPAIR's Colored MNIST. A row's
weight starts to change when the row is first drawn. Every step sums each class's weights over all rows: one elementwise pass over
N numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairGameConfig:
    lr_weights: float = 10.0  # learning rate of the weights

    def __post_init__(self) -> None:
        if self.lr_weights <= 0:
            raise UserError(f"repair_game: lr_weights={self.lr_weights:g} must be above 0")


class RepairGame(Method):
    Config = RepairGameConfig

    omega: Tensor  # (N,) by sample id
    label: Tensor  # (N,) class of each row drawn so far, 0 before
    seen: Tensor  # (N,) drawn at least once
    counts: Tensor  # (C,) rows of each class in training

    def __init__(self, cfg: RepairGameConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.register_buffer("omega", torch.zeros(facts.size, dtype=torch.float64))
        self.register_buffer("label", torch.zeros(facts.size, dtype=torch.long))
        self.register_buffer("seen", torch.zeros(facts.size, dtype=torch.bool))
        self.register_buffer("counts", facts.class_counts.double())
        self._read: list[tuple[Tensor, Tensor, Tensor]] = []  # (ids, classes, losses) of the step's rows, before its update

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        ce = task_loss(self.predict(batch.x), batch.y)
        if self.training:
            self._read.append((batch.index, batch.y, ce.detach().to(self.omega)))
        w = self.omega[batch.index].sigmoid().to(ce)
        return {"weighted_ce": batch.mean(w / self._mean_weight().to(ce) * ce)}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        self._read.clear()
        terms = update(batch)
        self._move_weights(*(engine.gather_rows(torch.cat(part)) for part in zip(*self._read, strict=True)))
        return terms

    def _by_class(self) -> Tensor:
        """(C,) sums of the weights; a row not drawn yet has omega 0 and weight 0.5."""
        drawn = self.omega.sigmoid() * self.seen
        sums = torch.zeros_like(self.counts).index_add_(0, self.label, drawn)
        visited = torch.zeros_like(self.counts).index_add_(0, self.label, self.seen.to(self.counts))
        return sums + 0.5 * (self.counts - visited).clamp(min=0)

    def _mean_weight(self) -> Tensor:
        return self._by_class().sum() / self.counts.sum()

    def _move_weights(self, index: Tensor, y: Tensor, ce: Tensor) -> None:
        """One step of plain SGD on V: one number per class for every row, and a part for the batch (see the repair's card)."""
        self.label[index], self.seen[index] = y, True
        w = self.omega[index].sigmoid()
        by_class = self._by_class().clamp(min=1e-12)
        total = by_class.sum()
        surprise = -(by_class / total).log()[y]
        risk, entropy = w @ ce, (w @ surprise).clamp(min=1e-12)
        ratio = risk / entropy.square()
        in_batch = torch.zeros_like(by_class).index_add_(0, y, w)
        per_class = ratio * (in_batch.sum() / total - in_batch / by_class)
        slope = self.omega.sigmoid()
        slope = slope * (1 - slope)
        own = (ratio * surprise - ce / entropy) * slope[index]
        self.omega -= self.cfg.lr_weights * per_class[self.label] * slope * self.seen
        self.omega.index_add_(0, index, own, alpha=-self.cfg.lr_weights)
