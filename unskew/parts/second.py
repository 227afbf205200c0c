"""A second network beside the first: the biased g of rebias, rubi and learned_mixin."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.models._contract import Model, maker
from unskew.records import Batch, Facts, Update


def make_second(settings: dict[str, Any], facts: Facts, fallback: Callable[[], nn.Module] | None, name: str = "g") -> Model:
    """The network of `g.model=NAME g.SETTING=...`; without a name `fallback`, or a word about what to give."""
    given = dict(settings)
    model = given.pop("model", "")
    if not model and given:
        raise UserError(
            f"{name}.{next(iter(given))} is given but no {name}.model; name the network, e.g. {name}.model=rebias-conv"
        )
    if model:
        made = maker(model, given, facts.shape, facts.num_classes)()
    elif fallback is not None:
        made = fallback()
    else:
        raise UserError(
            f"no biased network for inputs of shape {facts.shape}: name one that sees only the bias, e.g. {name}.model=mlp {name}.inputs=0"
        )
    if not isinstance(made, Model):
        raise UserError(f"{name}.model={model}: must be a network with named layers")
    return made


def features_and_logits(network: nn.Module, x: Tensor, layer: str = "") -> tuple[Tensor, Tensor]:
    """What a layer gives (the last by default; `logits` for the output itself), flat, and the logits, in one pass."""
    assert isinstance(network, Model)
    if layer == "logits":
        logits = network(x)
        return logits, logits
    h, logits = network.both(x, layer)
    return h.flatten(1), logits


class Pretraining:
    """For methods whose g may be trained first, alone, and then stay as it is."""

    cfg: Any
    g: Model
    age: Tensor
    alone = 0  # steps of g alone

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        self.alone = round(self.cfg.pretrain * steps_per_epoch) if self.cfg.g_training == "frozen" else 0
        if self.alone >= steps:
            raise UserError(
                f"pretrain={self.cfg.pretrain:g} epochs of g alone take all {steps} steps and leave none to f; "
                "lower pretrain, or raise train.epochs"
            )

    @property
    def prelude(self) -> int:
        return self.alone

    def pretrain_or(self, then: Callable[[], dict[str, Tensor]], batch: Batch, update: Update) -> dict[str, Tensor]:
        """A step of g alone until it has had its epochs, then the step `then`."""
        return update(batch, "g", ["g"]) if int(self.age) < self.alone else then()

    def loss_g(self, batch: Batch) -> dict[str, Tensor]:
        return {"g_ce": batch.mean(task_loss(self.g(batch.x), batch.y))}

    def frozen(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits of g as it is: no gradient, its statistics at rest."""
        was = self.g.training
        self.g.eval()
        with torch.no_grad():
            found = features_and_logits(self.g, x)
        self.g.train(was)
        return found

    def frozen_features(self, x: Tensor) -> Tensor:
        return self.frozen(x)[0]
