r"""Adversarial removal: a critic guesses the bias from a layer or the masked image, and what comes before learns to defeat it.

.. math::
    L = \ell\big(y, c(f(x))\big) + \sum_a \mathrm{CE}\big(a, d_a(R_\lambda(f(x)))\big) \qquad (+\ \beta\, \lvert x - m \odot x \rvert
    \text{ at the image}), \qquad R_\lambda(v) = v, \quad \nabla R_\lambda = -\lambda I

==========  ===============  ====================================================================================================
f           at               a layer by name, the last by default; `image`: the input times a mask m(x) in (0, 1) of a U-Net
d           critic, hidden   critic of every bias column: 300-300-300 with batch normalisation (mlp), the same after 3 convolutions
                             (conv, the default at the image), or a ResNet-18 (resnet18)
lambda      lambda_          factor of the reversed gradient; the critic itself learns at full weight
head        head             at a layer: at most so many epochs in which only the network's last module and the critic learn; it ends
                             when an epoch lowers the task's loss by less than 1 %
warmup      warmup           epochs in which the critic learns and no gradient is reversed
mask        mask             at the image: epochs in which the mask alone learns, after a warm-up in which the critic alone does;
                             then the mask rests, and classifier and critic learn
confusion   confusion        weight of the cross-entropy between the critic's guess and the uniform distribution, which moves what
                             comes before the critic and not the critic: it does not vanish when the critic is sure
c           --model          the task's loss; `class_weights` for several labels per row: #without / #with, as in the paper
==========  ===============  ====================================================================================================

`conditional=true` also shows the critic the labels: it must fail to guess the bias given the labels, so what the labels reveal by
themselves may stay. Rows without a bias value train the task but not the critic. For batches balanced by bias, set
`train.sampler=balanced`, which never draws those rows. The mask starts open (0.95) and multiplies the normalised image: what it
removes becomes the mean colour. The gradient of a confident critic nearly vanishes (at p = .9999 it is 1e-4): with a mask, use no
warm-up, or `confusion`, whose gradient is then about .5.

The authors' stages: at a layer, `head`, then jointly; at the image, from a trained classifier (`train.start=RUN`), `warmup`, `mask`,
then the classifier. `train.freeze` keeps any part of the method as it is.

Source: Wang, Zhao, Yatskar, Chang, Ordonez, "Balanced datasets are not enough", ICCV 2019, section 5; released code for sizes and
numbers (lambda 2 for COCO, 1 for imSitu; at the image lambda 5, beta 0.1).
Differs: one training with stages instead of the paper's chain of commands, off by default; the critic at the image is trained on the
masked image from the start, where the authors' ResNet-18 is trained on plain ones. The critic at a middle layer is the same MLP on
the flattened map, as in the code (the paper has three convolutions first: critic=conv). `conditional`, `confusion`, several bias
columns, and more than two values are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.losses import confusion, task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.nn import GradientReversal, share_statistics
from unskew.nn.mask import Mask
from unskew.parts.critics import make_critic
from unskew.records import Batch, Facts, Update

BETA, CHANNELS = 0.1, (32, 64, 64, 128, 128)
HIDDEN = (300, 300, 300)
LEVEL = 0.01  # relative gain of an epoch below which the task's loss has levelled off
FEWEST = 5  # training rows that every bias value needs for a meaningful critic


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialConfig:
    at: str = ""  # image, or a layer; empty: the last before the head
    lambda_: float = 1.0  # factor of the reversed gradient
    beta: float = BETA  # price of what the mask removes
    head: float = 0.0  # at a layer: at most so many epochs of the last module and the critic alone, first
    warmup: float = 0.0  # epochs in which only the critic learns from the bias
    mask: float = 0.0  # at the image: epochs of the mask alone, after the warm-up; 0: everything learns together
    confusion: float = 0.0  # weight of the critic's indecision in what comes before it; 0: only the reversed gradient
    critic: Literal["auto", "mlp", "conv", "resnet18"] = "auto"  # auto: conv at the image, mlp at a layer
    hidden: tuple[int, ...] = HIDDEN  # units of the critic's hidden layers
    mask_channels: tuple[int, ...] = CHANNELS  # of the U-Net, level by level
    conditional: bool = False  # show the critic the labels too
    class_weights: bool = False  # weigh each class or label by #without / #with

    def __post_init__(self) -> None:
        if min(self.head, self.mask, self.confusion) < 0:
            raise UserError("adversarial: head, mask and confusion must not be negative")
        if self.at == "image" and self.head:
            raise UserError(
                "adversarial: head is a stage of a critic at a layer; at the image, start from a run with train.start"
            )
        if self.at != "image" and self.mask:
            raise UserError("adversarial: mask is a stage of the mask; add at=image")
        if self.critic == "resnet18" and self.hidden != HIDDEN:
            raise UserError("adversarial: hidden is for critic=mlp and conv; leave it out with critic=resnet18")
        if any(size < 1 for size in (*self.hidden, *self.mask_channels)) or not self.mask_channels:
            raise UserError("adversarial: every layer in hidden and mask_channels needs at least one unit")
        if self.lambda_ < 0 or self.beta < 0 or self.warmup < 0:
            raise UserError("adversarial: lambda_, beta and warmup must not be negative")
        if self.at != "image" and (self.beta != BETA or self.mask_channels != CHANNELS):
            raise UserError("adversarial: beta and mask_channels belong to the mask; add at=image")


class Adversarial(Method):
    Config = AdversarialConfig
    sees = frozenset({"bias"})
    multi_label = True

    @classmethod
    def reads_inputs(cls, cfg: AdversarialConfig) -> bool:
        return bool(cfg.at)

    rows_seen: Tensor  # () rows trained on, for the stages
    epoch_loss: Tensor  # () of the stage of the head: sum of the task's loss in this epoch
    epoch_rows: Tensor
    last_loss: Tensor  # () mean of the epoch before
    head_rows: Tensor  # () rows seen when the stage ended; 0 before
    class_weight: Tensor  # (L,)

    def __init__(self, cfg: AdversarialConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        if not isinstance(self.model, Model):
            raise UserError("adversarial needs a network with named layers")
        self.mask = Mask(facts.shape, cfg.mask_channels) if cfg.at == "image" else None
        self.model.eval()
        with torch.no_grad():
            seen = torch.zeros(2, *facts.shape)
            shape = seen.shape[1:] if self.mask is not None else self.model.features(seen, cfg.at).shape[1:]
        self.model.train()
        labels = facts.num_classes if cfg.conditional else 0
        self.critics = nn.ModuleList(
            share_statistics(make_critic(cfg.critic, tuple(shape), labels, size, cfg.hidden, self.mask is not None))
            for size in facts.bias_sizes
        )
        self.reverse = GradientReversal(cfg.lambda_)
        self.register_buffer("rows_seen", torch.zeros((), dtype=torch.float64))
        if cfg.head:  # of this epoch, of the last one, and the rows seen when the stage ended
            for name in ("epoch_loss", "epoch_rows", "last_loss", "head_rows"):
                self.register_buffer(name, torch.zeros((), dtype=torch.float64))
        self.register_buffer("class_weight", facts.label_weight)

    @classmethod
    def check(cls, cfg: AdversarialConfig, data: DataSet) -> tuple[str, ...]:
        notes = []
        train = data.rows("train")
        for name, values, column in zip(data.bias_names, data.bias_values, data.bias[train].unbind(1), strict=True):
            counts = column[column >= 0].bincount(minlength=len(values))
            rare = int(counts.argmin())
            if int(counts[rare]) < FEWEST:
                raise UserError(
                    f"adversarial: {name}={values[rare]} has {int(counts[rare])} training rows, but a critic needs {FEWEST}; "
                    "merge it with another value, or leave the column out"
                )
            missing = int((column < 0).sum())
            if missing:
                notes.append(f"{missing} of {len(train)} training rows have no {name}; its critic does not see them")
        return tuple(notes)

    @property
    def staged(self) -> bool:
        return bool(self.cfg.head or self.cfg.mask)

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        if not self.staged:
            return super().parameter_sets()
        assert isinstance(self.model, Model)
        head = {id(p) for p in self.model.output.parameters()}
        sets = {
            "body": [p for p in self.model.parameters() if id(p) not in head],
            "head": [p for p in self.model.parameters() if id(p) in head],
            "critic": list(self.critics.parameters()),
        }
        return sets if self.mask is None else {**sets, "mask": list(self.mask.parameters())}

    @property
    def stage(self) -> str:
        """head, warmup, mask or joint."""
        seen, rows, cfg = float(self.rows_seen), self.facts.rows, self.cfg
        if cfg.head and not float(self.head_rows):
            return "head"
        start = float(self.head_rows) if cfg.head else 0.0
        if seen < start + cfg.warmup * rows:
            return "warmup"
        return "mask" if seen < start + (cfg.warmup + cfg.mask) * rows else "joint"

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        if not self.staged:
            return update(batch)
        learns = {
            "head": ["head", "critic"],
            "warmup": ["critic"] if self.cfg.mask else ["body", "head", "critic"],
            "mask": ["mask"],
            "joint": ["body", "head", "critic"],
        }
        stage = self.stage
        terms = update(batch, "", learns[stage])
        if stage == "head":
            self._watch(float(terms["task"]), float(self._rows(batch)))
        return terms

    def _watch(self, loss: float, rows: float) -> None:
        """End the stage of the head at its last epoch, or when an epoch gained less than LEVEL of the loss before it."""
        self.epoch_loss += loss * rows
        self.epoch_rows += rows
        ended = float(self.rows_seen) >= self.cfg.head * self.facts.rows
        if float(self.epoch_rows) >= self.facts.rows:
            mean, before = float(self.epoch_loss / self.epoch_rows), float(self.last_loss)
            ended = ended or (before > 0 and mean > (1 - LEVEL) * before)
            self.last_loss.fill_(mean)
            self.epoch_loss.zero_()
            self.epoch_rows.zero_()
        if ended:
            self.head_rows.copy_(self.rows_seen)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        terms: dict[str, Tensor] = {}
        x = batch.x
        if self.mask is not None:
            x = self.mask(batch.x) * batch.x
            terms["removed"] = self.cfg.beta * (batch.x - x).abs().mean()
            read, logits = x, self.model(x)
        else:
            read, logits = self.model.both(x, self.cfg.at)
        weight = self.class_weight if self.cfg.class_weights else None
        task = task_loss(logits, batch.y, weight)
        terms["task"] = batch.mean(task)
        warm = self.training and self.stage in ("head", "warmup")
        if self.training:
            self.rows_seen += self._rows(batch)
        if self.cfg.confusion and not warm:
            undecided = [confusion(self._without_learning(critic, read, batch)) for critic in self.critics]
            terms["confusion"] = self.cfg.confusion * torch.stack([batch.mean(u) for u in undecided]).sum()
        read = read.detach() if warm else self.reverse(read)
        columns = batch.need("bias").unbind(1)
        terms["critic"] = torch.stack(
            [self._guess(critic, read, b, batch) for critic, b in zip(self.critics, columns, strict=True)]
        ).sum()
        return terms

    def _without_learning(self, critic: nn.Module, read: Tensor, batch: Batch) -> Tensor:
        """The critic's logits with its weights and running statistics as constants: only what comes before it gets a gradient."""
        fixed = {name: p.detach() for name, p in critic.named_parameters()} | {n: b.clone() for n, b in critic.named_buffers()}
        logits: Tensor = torch.func.functional_call(critic, fixed, (read, self._told(batch)))
        return logits

    def _guess(self, critic: nn.Module, read: Tensor, b: Tensor, batch: Batch) -> Tensor:
        """Mean cross-entropy of one critic over rows with a known value; others do not enter its batch statistics either."""
        known = (b >= 0).nonzero().flatten()
        rows = float(engine.global_sum(read.new_tensor(float(len(known)))))
        if rows < 2:  # too few in the whole batch to learn from: return a zero that every process can differentiate
            return 0 * read.sum() + 0 * sum(p.sum() for p in critic.parameters())
        told = self._told(batch)
        ce = F.cross_entropy(critic(read[known], None if told is None else told[known]), b[known], reduction="none")
        if batch.weight is not None:
            ce = ce * batch.weight[known]
        # Processes are averaged by their share of all rows in the batch, known or not.
        share = engine.global_sum(read.new_tensor(float(len(b)))) / len(b)
        return ce.sum() / rows * share

    def predict(self, x: Tensor) -> Tensor:
        return super().predict(x if self.mask is None else self.mask(x) * x)

    def _told(self, batch: Batch) -> Tensor | None:
        if not self.cfg.conditional:
            return None
        if self.facts.multi_label:
            return batch.y.to(batch.x.dtype)
        return nn.functional.one_hot(batch.y, self.facts.num_classes).to(batch.x.dtype)

    def _rows(self, batch: Batch) -> Tensor:
        return engine.global_sum(torch.tensor(float(len(batch.index)), dtype=torch.float64, device=batch.x.device))
