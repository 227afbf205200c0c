r"""DeNetDM: a shallow and a deep expert share the work, the deep one takes the shortcut; the network learns what the shallow one knows.

.. math::
    L_1 = \mathrm{CE}\big(W (h_s + h_d) + c,\ y\big), \qquad
    L_2 = \mathrm{CE}\big(z + z_d,\ y\big) + \lambda\, T^2\, \mathrm{CE}\big(\mathrm{softmax}(z_s / T),\ \mathrm{softmax}(z / T)\big)

    z_s = W h_s + c, \qquad z_d = W h_d + c

=========  ===================  =================================================================================================
h_s, h_d   shallow, deep        last features of two networks of different depth, trained together on the sum of their evidence
z          --model              the final network: in a product of experts with the deep one, and taught by the shallow one
first      first                epochs of L_1, part of train.epochs; afterwards both experts are frozen
=========  ===================  =================================================================================================

Deep networks prefer what is encoded in few dimensions, and shortcuts are; so the shallow expert is left with the rest. By default the
experts are fully connected, of two and four hidden layers of 100; name others with shallow.model= and deep.model= (experts whose last
features differ in width keep last layers of their own).

Source: Sreelatha, Kappiyath, Chaudhuri, Dutta, "DeNetDM: debiasing by network depth modulation", NeurIPS 2024, section 3, and the
authors' code (three and five layers, T 2, lambda 1).
Differs: one training in two parts instead of two of 100 epochs; the final network starts from scratch. The published code keeps the
epoch that is best on the conflicting rows of a validation split, which needs bias labels; here the selection rule is the run's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model, maker
from unskew.parts.second import features_and_logits, make_second
from unskew.records import Batch, Facts, Update

HIDDEN = {"shallow": "100,100", "deep": "100,100,100,100"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeNetDMConfig:
    first: float = 5.0  # epochs in which the experts learn, before the network does
    distil: float = 1.0  # lambda: weight of the shallow expert's teaching
    temperature: float = 2.0  # T
    shallow: dict[str, Any] = field(default_factory=dict)  # the shallow expert and its settings; empty: two layers of 100
    deep: dict[str, Any] = field(default_factory=dict)  # the deep expert and its settings; empty: four layers of 100

    def __post_init__(self) -> None:
        if self.first <= 0 or self.distil < 0 or self.temperature <= 0:
            raise UserError("denetdm: first and temperature must be above 0 and distil not be negative")


class DeNetDM(Method):
    Config = DeNetDMConfig
    parts = ("experts", "target")
    alone = 0  # steps of the experts

    @classmethod
    def reads_inputs(cls, cfg: DeNetDMConfig) -> bool:
        return True

    def __init__(self, cfg: DeNetDMConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.shallow, self.deep = (_expert(name, getattr(cfg, name), facts) for name in ("shallow", "deep"))
        widths = [_output(net).in_features for net in (self.shallow, self.deep)]
        self.shared = widths[0] == widths[1]
        if self.shared:  # one last layer reads the sum of both features; the deep expert's own is not used
            self.deep.output.requires_grad_(False)

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        self.alone = max(1, round(self.cfg.first * steps_per_epoch))
        if self.alone >= steps:
            raise UserError(
                f"denetdm: first={self.cfg.first:g} epochs of the experts take all {steps} steps; lower first, or raise train.epochs"
            )

    @property
    def prelude(self) -> int:
        return self.alone

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        experts = [*self.shallow.parameters(), *self.deep.parameters()]
        return {"target": list(self.model.parameters()), "experts": [p for p in experts if p.requires_grad]}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        return update(batch, "experts", ["experts"]) if int(self.age) < self.alone else update(batch, "target", ["target"])

    def loss_experts(self, batch: Batch) -> dict[str, Tensor]:
        shallow, deep = self._evidence(batch.x)
        bias = _output(self.shallow).bias if self.shared else 0.0  # counted once: the layer reads the sum of the features
        return {"experts_ce": batch.mean(task_loss(shallow + deep - bias, batch.y))}

    def loss_target(self, batch: Batch) -> dict[str, Tensor]:
        modes = [net.training for net in (self.shallow, self.deep)]
        self.shallow.eval(), self.deep.eval()
        with torch.no_grad():
            shallow, deep = self._evidence(batch.x)
        for net, mode in zip((self.shallow, self.deep), modes, strict=True):
            net.train(mode)
        z = self.predict(batch.x)
        terms = {"product_ce": batch.mean(task_loss(z + deep, batch.y))}
        terms["distil"] = self.cfg.distil * batch.mean(distilled(z, shallow, self.cfg.temperature))
        return terms

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {**self.loss_experts(batch), **self.loss_target(batch)}

    def _evidence(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of the shallow and of the deep expert, each on its own."""
        shallow = self.shallow(x)
        other, deep = features_and_logits(self.deep, x)
        return shallow, self.shallow.output(other) if self.shared else deep


def distilled(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    r"""Cross-entropy of a softened prediction with a softened teacher, per sample.

    .. math::  \ell_i = -T^2 \sum_c \mathrm{softmax}(t_i / T)_c \log \mathrm{softmax}(z_i / T)_c

    >>> round(float(distilled(torch.zeros(1, 2), torch.zeros(1, 2), 1.0)), 4)
    0.6931
    """
    soft = (teacher / temperature).softmax(1)
    return -(temperature**2) * (soft * (logits / temperature).log_softmax(1)).sum(1)


def _expert(name: str, settings: dict[str, Any], facts: Facts) -> Model:
    fallback = maker("mlp", {"hidden": HIDDEN[name]}, facts.shape, facts.num_classes)
    network = make_second(settings, facts, fallback, name)
    _output(network)
    return network


def _output(network: Model) -> nn.Linear:
    if not isinstance(network.output, nn.Linear):
        raise UserError("denetdm needs experts that end in a linear layer")
    return network.output
