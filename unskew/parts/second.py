"""A second network: the biased g of rebias, rubi and learned_mixin."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.models._contract import Model, maker
from unskew.records import Batch, Facts, Update


def make_second(settings: dict[str, Any], facts: Facts, fallback: Callable[[], nn.Module] | None, name: str = "g") -> Model:
    """The network of `g.model=NAME g.SETTING=...`; without a name `fallback`, or an error if there is none."""
    given = dict(settings)
    model = given.pop("model", "")
    if not model and given:
        raise UserError(f"{name}.{next(iter(given))} needs {name}.model; name the network, such as {name}.model=rebias-conv")
    if model:
        network = maker(model, given, facts.shape, facts.num_classes)()
    elif fallback is not None:
        network = fallback()
    else:
        raise UserError(
            f"no default biased network for inputs of shape {facts.shape}: name one that sees only the bias, "
            f"such as {name}.model=mlp {name}.inputs=0"
        )
    if not isinstance(network, Model):
        raise UserError(f"{name}.model={model}: must be a network with named layers")
    return network


def features_and_logits(network: nn.Module, x: Tensor, layer: str = "") -> tuple[Tensor, Tensor]:
    """The flattened output of a layer (by default the last; `logits` for the output itself), and the logits, in one pass."""
    assert isinstance(network, Model)
    if layer == "logits":
        logits = network(x)
        return logits, logits
    h, logits = network.both(x, layer)
    return h.flatten(1), logits


class Pretraining:
    """For methods whose g may be trained first, alone, and then frozen."""

    cfg: Any
    g: Model
    age: Tensor
    alone = 0  # steps of g alone

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        self.alone = round(self.cfg.pretrain * steps_per_epoch) if self.cfg.g_training == "frozen" else 0
        if self.alone >= steps:
            raise UserError(
                f"pretrain={self.cfg.pretrain:g} epochs of g alone take all {steps} steps and leave none for f; "
                "lower pretrain, or raise train.epochs"
            )

    @property
    def prelude(self) -> int:
        return self.alone

    def pretrain_or(self, then: Callable[[], dict[str, Tensor]], batch: Batch, update: Update) -> dict[str, Tensor]:
        """A step of g alone during its epochs of pre-training, afterwards the step `then`."""
        return update(batch, "g", ["g"]) if int(self.age) < self.alone else then()

    def loss_g(self, batch: Batch) -> dict[str, Tensor]:
        return {"g_ce": batch.mean(task_loss(self.g(batch.x), batch.y))}

    def frozen(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits of g in evaluation mode, without gradients."""
        was = self.g.training
        self.g.eval()
        with torch.no_grad():
            output = features_and_logits(self.g, x)
        self.g.train(was)
        return output

    def frozen_features(self, x: Tensor) -> Tensor:
        return self.frozen(x)[0]
