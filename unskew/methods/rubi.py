r"""RUBi: the logits of f are masked by the prediction of a biased network g, so that f learns most where g is wrong.

.. math::
    L = \mathrm{CE}\big(f(x) \odot \sigma(c),\ y\big) + w\, \mathrm{CE}(c, y) + \mathrm{CE}(g(x), y), \qquad
    c = W\, h_g(x) + b \ \text{ with no gradient into } h_g

=====  =====================  ===================================================================================
g      g.model, g.SETTING     the biased network, trained by its own loss; by default like f
c      head                   a linear layer on g's last features; its sigmoid is the mask
w      weight                 1
=====  =====================  ===================================================================================

Only f predicts, without the mask. `g_training=frozen` trains g alone for `pretrain` epochs and then freezes it.

Source: Cadene, Dancette, Ben-younes, Cord, Parikh, "RUBi: reducing unimodal biases for visual question answering", NeurIPS 2019,
as adapted to images by Bahng et al., ICML 2020.
Differs: one linear layer serves as mask and as question branch, as in the code released with ReBias. There it is never optimised,
so the mask is a random projection of g's features; `frozen_head=true` does the same. In PGD's runs of RUBi, g has the same
architecture as f.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import rubi, task_loss
from unskew.methods._contract import Method
from unskew.parts.second import Pretraining, features_and_logits, make_second
from unskew.records import Batch, Facts, Update

PRETRAIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RUBiConfig:
    weight: float = 1.0  # weight of the question branch's loss
    g: dict[str, Any] = field(default_factory=dict)  # biased network and its settings; empty: like f
    g_training: Literal["joint", "frozen"] = "joint"  # g is trained along with f, or first and then frozen
    pretrain: float = PRETRAIN  # epochs of g alone, if it is frozen afterwards
    frozen_head: bool = False  # keep the head random, as in the released code

    def __post_init__(self) -> None:
        if self.weight < 0 or self.pretrain < 0:
            raise UserError("rubi: weight and pretrain must not be negative")
        if self.g_training == "joint" and self.pretrain != PRETRAIN:
            raise UserError("rubi: g_training=joint trains g along with f; leave out pretrain, or set g_training=frozen")
        if self.frozen_head and self.weight != 1:
            raise UserError("rubi: frozen_head=true trains no question branch; leave out weight")


class RUBi(Pretraining, Method):
    Config = RUBiConfig
    parts = ("g", "f")

    def __init__(self, cfg: RUBiConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.g = make_second(cfg.g, facts, make_model)
        with torch.no_grad():
            width = features_and_logits(self.g.eval(), torch.zeros(2, *facts.shape))[0].shape[1]
        self.head = nn.Linear(width, facts.num_classes).requires_grad_(not cfg.frozen_head)
        self.train()

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        head = [] if self.cfg.frozen_head else list(self.head.parameters())
        return {"f": [*self.model.parameters(), *head], "g": list(self.g.parameters())}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        if self.cfg.g_training == "joint":
            return update(batch, "both", ["f", "g"])
        return self.pretrain_or(lambda: update(batch, "f", ["f"]), batch, update)

    def loss_f(self, batch: Batch) -> dict[str, Tensor]:
        return self._masked(batch, self.frozen_features(batch.x))

    def loss_both(self, batch: Batch) -> dict[str, Tensor]:
        h, own = features_and_logits(self.g, batch.x)
        return {**self._masked(batch, h.detach()), "g_ce": batch.mean(task_loss(own, batch.y))}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss_both(batch)

    def _masked(self, batch: Batch, h: Tensor) -> dict[str, Tensor]:
        guess = self.head(h)
        terms = {"ce": batch.mean(rubi(self.model(batch.x), guess, batch.y))}
        if not self.cfg.frozen_head:
            terms["question_ce"] = self.cfg.weight * batch.mean(task_loss(guess, batch.y))
        return terms
