r"""Adversarial removal: a critic guesses the bias from a layer or the masked image, and what comes before learns to defeat it.

.. math::
    L = \ell\big(y, c(f(x))\big) + \sum_a \mathrm{CE}\big(a, d_a(R_\lambda(f(x)))\big) \qquad (+\ \beta\, \lvert x - m \odot x \rvert
    \text{ at the image}), \qquad R_\lambda(v) = v, \quad \nabla R_\lambda = -\lambda I

==========  ===============  ====================================================================================================
f           at               a layer by name, the last by default; `image`: the input times a mask m(x) in (0, 1) of a U-Net
d           hidden           critic of every bias column: 300-300-300 with batch normalisation, at the image after 3 convolutions
lambda      lambda_          factor of the reversed gradient; the critic itself learns at full weight
warmup      warmup           epochs in which the critic learns and no gradient is reversed
c           --model          the task's loss; `class_weights` for several labels per row: #without / #with, as in the paper
==========  ===============  ====================================================================================================

`conditional=true` also shows the critic the labels: it must fail to guess the bias given the labels, so what the labels reveal by
themselves may stay. Rows without a bias value train the task but not the critic. For batches balanced by bias, set
`train.sampler=balanced`, which never draws those rows. The mask starts open (0.95) and multiplies the normalised image: what it
removes becomes the mean colour. With a mask, use no warm-up: a confident critic leaves hardly any gradient to reverse.

Source: Wang, Zhao, Yatskar, Chang, Ordonez, "Balanced datasets are not enough", ICCV 2019, section 5; released code for sizes and
numbers (lambda 2 for COCO, 1 for imSitu; at the image lambda 5, beta 0.1).
Differs: one training with a warm-up instead of the paper's chain of commands; to start from a trained head or network, train it
in another run (`train.start`). The critic at a middle layer is the same MLP on the flattened map, as in the code. `conditional`,
several bias columns, and more than two values are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.nn import GradientReversal, share_statistics
from unskew.nn.mask import Mask
from unskew.records import Batch, Facts

BETA, CHANNELS = 0.1, (32, 64, 64, 128, 128)
FEWEST = 5  # training rows that every bias value needs for a meaningful critic


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialConfig:
    at: str = ""  # image, or a layer; empty: the last before the head
    lambda_: float = 1.0  # factor of the reversed gradient
    beta: float = BETA  # price of what the mask removes
    warmup: float = 0.0  # epochs in which only the critic learns from the bias
    hidden: tuple[int, ...] = (300, 300, 300)  # units of the critic's hidden layers
    mask_channels: tuple[int, ...] = CHANNELS  # of the U-Net, level by level
    conditional: bool = False  # show the critic the labels too
    class_weights: bool = False  # weigh each label by #without / #with, for several labels per row

    def __post_init__(self) -> None:
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

    rows_seen: Tensor  # () rows trained on, for the warm-up
    class_weight: Tensor  # (L,)

    def __init__(self, cfg: AdversarialConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        if not isinstance(self.model, Model):
            raise UserError("adversarial needs a network with named layers")
        if cfg.class_weights and not facts.multi_label:
            raise UserError("adversarial: class_weights is for several labels per row")
        self.mask = Mask(facts.shape, cfg.mask_channels) if cfg.at == "image" else None
        self.model.eval()
        with torch.no_grad():
            seen = torch.zeros(2, *facts.shape)
            shape = seen.shape[1:] if self.mask is not None else self.model.features(seen, cfg.at).shape[1:]
        self.model.train()
        labels = facts.num_classes if cfg.conditional else 0
        self.critics = nn.ModuleList(
            share_statistics(Critic(tuple(shape), labels, size, cfg.hidden, pictures=self.mask is not None))
            for size in facts.bias_sizes
        )
        self.reverse = GradientReversal(cfg.lambda_)
        self.register_buffer("rows_seen", torch.zeros((), dtype=torch.float64))
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
        warm = self.training and float(self.rows_seen) < self.cfg.warmup * self.facts.rows
        if self.training:
            self.rows_seen += self._rows(batch)
        read = read.detach() if warm else self.reverse(read)
        columns = batch.need("bias").unbind(1)
        terms["critic"] = torch.stack(
            [self._guess(critic, read, b, batch) for critic, b in zip(self.critics, columns, strict=True)]
        ).sum()
        return terms

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


class Critic(nn.Module):
    """The paper's attacker as a critic: an MLP with batch normalisation, after three convolutions if it sees images."""

    def __init__(self, shape: tuple[int, ...], told: int, outputs: int, hidden: tuple[int, ...], pictures: bool) -> None:
        super().__init__()
        self.look: nn.Module = nn.Flatten()
        width = int(torch.tensor(shape).prod())
        if pictures:
            layers: list[nn.Module] = []
            channels = shape[0]
            for size in (16, 32, 64):
                layers += [nn.Conv2d(channels, size, 3, stride=2, padding=1), nn.BatchNorm2d(size), nn.LeakyReLU()]
                channels = size
            self.look = nn.Sequential(*layers, nn.Flatten())
            with torch.no_grad():
                width = self.look.eval()(torch.zeros(2, *shape)).shape[1]
            self.look.train()
        width += told
        parts: list[nn.Module] = []
        for size in hidden:
            parts += [nn.Linear(width, size), nn.BatchNorm1d(size), nn.LeakyReLU()]
            width = size
        self.guess = nn.Sequential(*parts, nn.Linear(width, outputs))

    def forward(self, read: Tensor, told: Tensor | None) -> Tensor:
        h = self.look(read)
        guessed: Tensor = self.guess(h if told is None else torch.cat([h, told], 1))
        return guessed
