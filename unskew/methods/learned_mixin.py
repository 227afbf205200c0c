r"""LearnedMixin+H: f is trained in a product of experts with a biased g, whose influence f can reduce.

.. math::
    L = \mathrm{CE}\big(\log p_f + a \log p_g,\ y\big) + w\, H\big(\mathrm{softmax}(a \log p_g)\big), \qquad
    a = \mathrm{softplus}(v^\top h_f + c)

=====  =====================  ===================================================================================
g      g.model, g.SETTING     the biased network: trained first for `pretrain` epochs, then frozen; by default like f
a      head                   how much f trusts g on this row, from f's last features
w      penalty                0.36 keeps a from falling to 0
=====  =====================  ===================================================================================

Only f predicts, which knows what g does not: on aligned rows it may be worse than chance. `variant=product` is the plain bias
product: a = 1, no penalty.

Source: Clark, Yatskar, Zettlemoyer, "Don't take the easy way out", EMNLP 2019, sections 3.2.3 and 3.2.4; w as for VQA-CP.
Differs: the code released with ReBias never optimises the layer of a (`frozen_head=true` does the same) and runs the frozen g in
train mode, so that its batch statistics drift (not offered). `g_training=joint` trains g along with f. The epochs of pre-training
are part of train.epochs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import learned_mixin_h, task_loss
from unskew.methods._contract import Method
from unskew.parts.second import Pretraining, features_and_logits, make_second
from unskew.records import Batch, Facts, Update

PENALTY, PRETRAIN = 0.36, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedMixinConfig:
    variant: Literal["learned", "product"] = "learned"  # product: a = 1, no penalty
    penalty: float = PENALTY  # w: weight of the entropy
    g: dict[str, Any] = field(default_factory=dict)  # biased network and its settings; empty: like f
    g_training: Literal["frozen", "joint"] = "frozen"  # g is trained first and then frozen, or along with f
    pretrain: float = PRETRAIN  # epochs of g alone
    frozen_head: bool = False  # keep the layer of a random, as in the released code

    def __post_init__(self) -> None:
        if self.penalty < 0 or self.pretrain < 0:
            raise UserError("learned_mixin: penalty and pretrain must not be negative")
        if self.variant == "product" and (self.penalty != PENALTY or self.frozen_head):
            raise UserError("learned_mixin: variant=product has neither penalty nor head; leave out penalty and frozen_head")
        if self.g_training == "joint" and self.pretrain != PRETRAIN:
            raise UserError("learned_mixin: g_training=joint trains g along with f; leave out pretrain")


class LearnedMixin(Pretraining, Method):
    Config = LearnedMixinConfig
    parts = ("g", "f")

    def __init__(self, cfg: LearnedMixinConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.g = make_second(cfg.g, facts, make_model)
        with torch.no_grad():
            width = features_and_logits(self.model.eval(), torch.zeros(2, *facts.shape))[0].shape[1]
        self.train()
        trained = not cfg.frozen_head and cfg.variant == "learned"
        self.head = nn.Linear(width, 1).requires_grad_(trained)

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        mine = [*self.model.parameters(), *self.head.parameters()]
        return {"f": [p for p in mine if p.requires_grad], "g": list(self.g.parameters())}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        if self.cfg.g_training == "joint":
            return update(batch, "both", ["f", "g"])
        return self.pretrain_or(lambda: update(batch, "f", ["f"]), batch, update)

    def loss_f(self, batch: Batch) -> dict[str, Tensor]:
        return self._mixed(batch, self.frozen(batch.x)[1])

    def loss_both(self, batch: Batch) -> dict[str, Tensor]:
        own = self.g(batch.x)
        return {**self._mixed(batch, own.detach()), "g_ce": batch.mean(task_loss(own, batch.y))}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss_both(batch)

    def _mixed(self, batch: Batch, bias_logits: Tensor) -> dict[str, Tensor]:
        h, logits = features_and_logits(self.model, batch.x)
        if self.cfg.variant == "product":
            ce, _ = learned_mixin_h(logits, bias_logits, torch.ones_like(logits[:, 0]), batch.y, 0.0)
            return {"ce": batch.mean(ce)}
        factor = F.softplus(self.head(h)).squeeze(1)
        ce, entropy = learned_mixin_h(logits, bias_logits, factor, batch.y, self.cfg.penalty)
        return {"ce": batch.mean(ce), "entropy": batch.mean(entropy)}
