r"""ReBias: train f to be independent of networks g that are biased by design.

.. math::
    \min_f\; \mathrm{CE}(f) + \lambda \sum_g \mathrm{HSIC}_1(f, g), \qquad
    \min_g\; \mathrm{CE}(g) - \lambda_g \mathrm{HSIC}_1(f, g)

=========  ==================  ==========================================================================================
f          --model             the final network
g          g.model, g2, g3     networks that can only see the bias: 1x1 convolutions (colour), BagNet (texture), 2-D (static)
HSIC_1     measure.hsic        unbiased estimator on the batch, RBF kernels of the two feature layers; needs 4 rows
sigma      sigma               kernel width: a number, or `median` of the distances, updated every epoch, or of the `batch` itself
order      order               g before f (released code) or f before g (Algorithm 1), on the same batch
=========  ==================  ==========================================================================================

Every 50 steps the log has `kernel`, the kernel value of f's typical pair of rows, and `gradient_ratio`, the length of HSIC's gradient
over the task's, at f's features. With the fixed width 1 a typical pair of 128-d features has e^-32, so HSIC is nearly blind, and its
gradient is 3 to 16 times shorter than the task's: raise lambda_f, read logits (`feature=logits`), or let widths follow the features.

Source: Bahng, Chun, Yun, Choo, Oh, "Learning de-biased representations with biased representations", ICML 2020, equation 3,
Algorithm 1; released code.
Differs: lambda_g multiplies HSIC as in Algorithm 1 and the code (in equation 3, the loss of g). The diagonal of the kernel
matrices is set to zero (the code subtracts 1 everywhere, which is the same for RBF). `sigma=median` is the mean over an epoch's
batches of the root of the median squared distance (off the diagonal), used in the next epoch; the code pools the first quarter of
the epoch's batches, self-distances included. `sigma=batch` and `normalise` are ours. With `order=g-first` f runs once a step: its
pass serves the updates of g and its own, as f does not change in between. So the batch statistics of f move once a step and its
dropout is drawn once (twice in the code, once per update; also here with f-first or train.accumulate above 1, where f runs in each
update). The pass of f has no gradient in the update of g, and vice versa: each optimiser updates only its own network. On images of
more than 64 pixels across the default g reads every second, third, ... pixel. The weights of a repair apply to the losses, not to
HSIC. For the optimiser AdamP, set `optim.name=adamp`.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.measure.hsic import hsic_of_kernels, kernel_matrix
from unskew.methods._contract import Method
from unskew.models._contract import maker
from unskew.parts.second import features_and_logits, make_second
from unskew.records import Batch, Facts, Update

SIDE = 64  # pixels across of what the default g reads: more of a photograph costs gigabytes and shows it the same colours
WATCH = 50  # steps between looks at kernel and gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class ReBiasConfig:
    lambda_f: float = 1.0  # weight of HSIC in the loss of f
    lambda_g: float = 1.0  # weight of HSIC in the loss of g
    g: dict[str, Any] = field(
        default_factory=dict
    )  # network and its settings; empty, for images: rebias-conv with kernel 1 (64 pixels across)
    g2: dict[str, Any] = field(default_factory=dict)  # a second network g
    g3: dict[str, Any] = field(default_factory=dict)  # a third
    g_updates: int = 1  # steps of g for each step of f
    order: Literal["g-first", "f-first"] = "g-first"  # which network is updated first
    sigma: str = "1.0"  # kernel width: a number, median (of the last epoch's distances) or batch (of this batch's)
    normalise: bool = False  # HSIC divided by the root of both networks' own HSIC, as in CKA
    feature: str = ""  # layer to compare: a name, or logits; empty: the last before them

    def __post_init__(self) -> None:
        if self.lambda_f < 0 or self.lambda_g < 0 or self.g_updates < 1:
            raise UserError("rebias: lambda_f and lambda_g must not be negative, and g_updates must be at least 1")
        try:
            fine = self.sigma in ("median", "batch") or 0 < float(self.sigma) < float("inf")
        except ValueError:
            fine = False
        if not fine:
            raise UserError(f"rebias: sigma={self.sigma} must be a number above 0, median, or batch")


@dataclass(slots=True)
class Pass:
    """One pass of f, which the updates of g read without gradient and the update of f with it."""

    rows: int
    output: tuple[Tensor, Tensor] | None = None


class ReBias(Method):
    Config = ReBiasConfig
    parts = ("g", "f")

    @classmethod
    def reads_inputs(cls, cfg: ReBiasConfig) -> bool:
        return not cfg.g

    width: Tensor  # (1 + G,) kernel widths of f and each g
    width_sum: Tensor  # of this epoch's batches
    width_steps: Tensor  # () steps of this epoch
    steps_per_epoch = 0
    pass_of_f: "Pass | None" = None  # during a step that updates g first
    watched: dict[str, Tensor]  # figures for the log, every WATCH steps

    def __init__(self, cfg: ReBiasConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        colour = None
        if len(facts.shape) == 3:
            colour = maker("rebias-conv", {"kernel": 1, "side": SIDE}, facts.shape, facts.num_classes)
        given = [(name, getattr(cfg, name)) for name in ("g", "g2", "g3")]
        self.g = nn.ModuleList(make_second(s, facts, colour if n == "g" else None, n) for n, s in given if s or n == "g")
        start = 1.0 if cfg.sigma in ("median", "batch") else float(cfg.sigma)
        self.watched = {}
        self.register_buffer("width", torch.full((1 + len(self.g),), start))
        self.register_buffer("width_sum", torch.zeros(1 + len(self.g)))
        self.register_buffer("width_steps", torch.zeros((), dtype=torch.long))

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        self.steps_per_epoch = steps_per_epoch

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        return {"f": list(self.model.parameters()), "g": list(self.g.parameters())}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        def move_g() -> dict[str, Tensor]:
            for _ in range(self.cfg.g_updates):
                terms = update(batch, "g", ["g"])
            return terms

        if self.cfg.order == "g-first":
            self.pass_of_f = Pass(len(batch.index))
            try:
                return {**move_g(), **update(batch, "f", ["f"]), **self.watched}
            finally:
                self.pass_of_f = None
        return {**update(batch, "f", ["f"]), **move_g(), **self.watched}

    def loss_f(self, batch: Batch) -> dict[str, Tensor]:
        h, logits = self._of_f(batch)
        with torch.no_grad():
            biased = [features_and_logits(g, batch.x, self.cfg.feature)[0] for g in self.g]
        terms = {"ce": batch.mean(task_loss(logits, batch.y))}
        terms["hsic"] = self.cfg.lambda_f * self._dependence(h, biased)
        self.watched = self._watch(terms, h, biased) if (int(self.age) + 1) % WATCH == 0 else {}
        self._count(h, biased)
        return terms

    def loss_g(self, batch: Batch) -> dict[str, Tensor]:
        with nullcontext() if self.pass_of_f else torch.no_grad():
            h = self._of_f(batch)[0].detach()
        pairs = [features_and_logits(g, batch.x, self.cfg.feature) for g in self.g]
        ce = torch.stack([batch.mean(task_loss(logits, batch.y)) for _, logits in pairs]).sum()
        return {"g_ce": ce, "g_hsic": -self.cfg.lambda_g * self._dependence(h, [z for z, _ in pairs])}

    def _of_f(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features and logits of f; within a step that updates g first, of its one pass."""
        shared = self.pass_of_f
        if shared is None or shared.rows != len(batch.index):  # a part of a batch: train.accumulate
            return features_and_logits(self.model, batch.x, self.cfg.feature)
        if shared.output is None:
            shared.output = features_and_logits(self.model, batch.x, self.cfg.feature)
        return shared.output

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {**self.loss_g(batch), **self.loss_f(batch)}

    def _dependence(self, h: Tensor, biased: list[Tensor]) -> Tensor:
        features = [engine.whole_batch(z) for z in (h, *biased)]
        if len(features[0]) < 4:
            raise UserError(f"rebias: HSIC needs at least 4 rows in a batch, got {len(features[0])}; raise train.batch")
        if self.cfg.sigma == "median" and self.training and int(self.age) == 0 and int(self.width_steps) == 0:
            self.width.copy_(_median_distances(features))  # until the first epoch is complete
        widths = _median_distances(features) if self.cfg.sigma == "batch" else self.width
        kernels = [kernel_matrix(z, sigma=float(w)) for z, w in zip(features, widths, strict=True)]
        return torch.stack([self._hsic(kernels[0], other) for other in kernels[1:]]).sum()

    def _hsic(self, k: Tensor, other: Tensor) -> Tensor:
        if not self.cfg.normalise:
            return hsic_of_kernels(k, other)
        own = hsic_of_kernels(k, k) * hsic_of_kernels(other, other)  # both are above 0 unless all rows are alike
        return hsic_of_kernels(k, other) / own.clamp(min=1e-12).sqrt()

    def _watch(self, terms: dict[str, Tensor], h: Tensor, biased: list[Tensor]) -> dict[str, Tensor]:
        """For the log, not minimised: the kernel of a typical pair of f's rows, and HSIC's gradient over the task's, at f's features."""
        if not h.requires_grad:
            return {}
        widths = _median_distances([h]) if self.cfg.sigma == "batch" else self.width[:1]
        typical = (-(_median_distance(h.detach()) / widths[0].to(h)).square() / 2).exp()
        slopes = [torch.autograd.grad(terms[name], h, retain_graph=True)[0].norm() for name in ("hsic", "ce")]
        return {"kernel": typical, "gradient_ratio": slopes[0] / slopes[1].clamp(min=1e-30)}

    def _count(self, h: Tensor, biased: list[Tensor]) -> None:
        """Once per step, add the batch's median distances; at the end of an epoch their mean becomes the width."""
        if self.cfg.sigma != "median" or not self.training:
            return
        self.width_sum += _median_distances([engine.whole_batch(z) for z in (h, *biased)]).to(self.width_sum)
        self.width_steps += 1
        if int(self.width_steps) >= self.steps_per_epoch:
            self.width.copy_(self.width_sum / self.width_steps)
            self.width_sum.zero_()
            self.width_steps.zero_()


@torch.no_grad()
def _median_distances(features: list[Tensor]) -> Tensor:
    return torch.stack([_median_distance(z.detach()) for z in features])


def _median_distance(z: Tensor) -> Tensor:
    off = ~torch.eye(len(z), dtype=torch.bool, device=z.device)
    return torch.cdist(z, z)[off].median().clamp(min=1e-6)
