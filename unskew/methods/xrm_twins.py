r"""xrm_twins: two networks, each trained on half of the rows and on labels that the other corrects. The first stage of xrm.

.. math::
    L = \frac1C \sum_c \frac{1}{|B_c|} \sum_{i \in B_c} \mathrm{CE}\big(f_{s(i)}(x_i), \tilde y_i\big), \qquad
    \tilde y_i \leftarrow \arg\max f_{1 - s(i)}(x_i) \ \text{ with probability } \frac{C p_i - 1}{C - 1}

=====  ==========  =======================================================================================================
s      side        the half that a row belongs to, drawn once
y~     label       the row's label, at first its own; B_c are the rows of the batch whose y~ is c
p      -           how sure the network is that was not trained on the row: the largest of its probabilities
-      said        what each of the two networks said at the row's last visit, for xrm
=====  ==========  =======================================================================================================

What is easy to say of rows never trained on is what most rows show: labels drift towards the shortcut, and both networks with them.
Predictions are the mean of the two networks' logits.

Source: Pezeshki, Bouchacourt, Ibrahim, Ballas, Vincent, Lopez-Paz, "Discovering environments with XRM", ICML 2024, section 4, and the
authors' code.
Differs: the mean over classes instead of their sum; what the networks say is kept from the last visit in training, without another pass.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts
from unskew.stats.groups import group_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class XRMTwinsConfig:
    flip: bool = True  # let the other network correct labels; false: two networks, each on its half


class XRMTwins(Method):
    Config = XRMTwinsConfig

    side: Tensor  # (N,) 0 or 1: the network that is trained on the row
    label: Tensor  # (N,) the label it is trained on, -1 before the first visit
    said: Tensor  # (N, 2) what the two networks say, -1 before the first visit

    def __init__(self, cfg: XRMTwinsConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.twin = make_model()
        self.register_buffer("side", torch.randint(0, 2, (facts.size,)))
        self.register_buffer("label", torch.full((facts.size,), -1))
        self.register_buffer("said", torch.full((facts.size, 2), -1))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        both = torch.stack([self.model(batch.x), self.twin(batch.x)], 1)  # (B, 2, C)
        side = self.side[batch.index]
        label = self.label[batch.index]
        label = torch.where(label < 0, batch.y, label)
        rows = torch.arange(len(side), device=side.device)
        per_sample = task_loss(both[rows, side], label)
        if batch.weight is not None:
            per_sample = batch.weight * per_sample
        sums, counts = group_sums(per_sample, label, self.facts.num_classes)
        total = engine.global_sum(counts)
        means = engine.global_sum_with_gradient(sums) / total.clamp(min=1).to(sums)
        if self.training:
            self._remember(batch.index, both.detach(), both.detach()[rows, 1 - side], label)
        return {"balanced_ce": means.sum() / (total > 0).sum()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = (self.model(x) + self.twin(x)) / 2
        return logits

    def _remember(self, index: Tensor, both: Tensor, held_out: Tensor, label: Tensor) -> None:
        index, both, held_out, label = (engine.whole_batch(t) for t in (index, both, held_out, label))
        self.said[index] = both.argmax(2)
        flipped, chance = flips(held_out)
        draw = torch.rand(len(index), device=index.device) < chance  # the same draws in every process
        self.label[index] = torch.where(draw & self.cfg.flip, flipped, label)


def flips(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The class each row's label may change to, and how probable the change is: 0 at chance, 1 when the network is certain.

    >>> [t.tolist() for t in flips(torch.tensor([[0.0, 0.0], [100.0, 0.0]]))]
    [[0, 0], [0.0, 1.0]]
    """
    p, code = logits.softmax(1).max(1)
    classes = logits.shape[1]
    return code, ((classes * p - 1) / (classes - 1)).clamp(0, 1)
