r"""Learning from failure: a biased network fails on the rows that a second network should learn from.

.. math::
    L = \frac1B \sum_i \mathrm{GCE}_i(f_b) + \frac1B \sum_i W_i\, \mathrm{CE}_i(f_d), \qquad
    W_i = \frac{\hat e_{b,i}}{\hat e_{b,i} + \hat e_{d,i} + 10^{-8}}, \qquad
    \hat e_i = \frac{e_i}{\max_{j: y_j = y_i} e_j}

    e_i \leftarrow \mathrm{CE}_i \text{ at the first visit, then } \alpha e_i + (1 - \alpha)\, \mathrm{CE}_i

=========  ==============  ========================================================================================
f_b        biased          becomes biased through GCE with q; a second network like --model
f_d        --model         the final network
e          loss_b, loss_d  smoothed loss of every sample, by sample id
max        tree_b, tree_d  over all samples of the class visited so far, exact, by a tournament tree: O(batch log N) per step
=========  ==============  ========================================================================================

Source: Nam, Cha, Ahn, Lee, Shin, "Learning from failure: training debiased classifier from biased classifier", NeurIPS 2020,
Algorithm 1; the authors' code for the smoothing and the normalisation.
Differs: GCE itself; `scaled=true` is the code's q p^q CE, whose gradient is 0.7 times as long. The weights W carry no gradient.
Three other public versions skip the smoothing, normalise by the batch's maximum, or let gradients flow through W: all three give
other weights, as the tests show. A row drawn twice in one batch counts once in its average.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import gce, relative_difficulty, task_loss
from unskew.methods._contract import Method
from unskew.records import Batch, Facts

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LfFConfig:
    q: float = 0.7  # exponent of GCE
    alpha: float = 0.7  # weight of the old average in the smoothed loss
    scaled: bool = False  # use the code's gradient-scaled cross-entropy instead of GCE

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1 or not 0 <= self.alpha < 1:
            raise UserError("lff: q must lie in (0, 1] and alpha in [0, 1)")


class LfF(Method):
    Config = LfFConfig

    loss_b: Tensor  # (N,) smoothed losses by sample id; 0 before the first visit
    loss_d: Tensor
    place: Tensor  # (N,) leaf of a sample in its class's tree, -1 before the first visit
    used: Tensor  # (C,) leaves in use
    tree_b: Tensor  # the trees of all classes, one after another: node k holds the larger of nodes 2k and 2k + 1
    tree_d: Tensor
    start: Tensor  # (C,) where a class's tree begins
    leaves: Tensor  # (C,) its number of leaves, a power of two

    def __init__(self, cfg: LfFConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.biased = make_model()
        sizes = [1 << max(int(n) - 1, 0).bit_length() for n in facts.class_counts.tolist()]
        leaves = torch.tensor(sizes)
        self.depth = int(leaves.max()).bit_length() - 1
        for name in ("loss_b", "loss_d"):
            self.register_buffer(name, torch.zeros(facts.size))
        for name in ("tree_b", "tree_d"):
            self.register_buffer(name, torch.zeros(int(2 * leaves.sum())))
        self.register_buffer("place", torch.full((facts.size,), -1))
        self.register_buffer("used", torch.zeros(len(leaves), dtype=torch.long))
        self.register_buffer("leaves", leaves)
        self.register_buffer("start", 2 * (leaves.cumsum(0) - leaves))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        logits_d, logits_b = self.predict(batch.x), self.biased(batch.x)
        ce_d = task_loss(logits_d, batch.y)
        with torch.no_grad():
            ce_b = task_loss(logits_b, batch.y)
            if self.training:
                self._remember(batch, ce_b, ce_d.detach())
            weight = self._weight(batch.index, batch.y)
        loss_b = gce(logits_b, batch.y, self.cfg.q, scaled=self.cfg.scaled)
        loss_d = weight.to(ce_d) * ce_d
        if batch.weight is not None:
            loss_b, loss_d = batch.weight * loss_b, batch.weight * loss_d
        return {"gce": loss_b.mean(), "weighted_ce": loss_d.mean()}

    def _weight(self, index: Tensor, y: Tensor) -> Tensor:
        root = self.start[y] + 1
        normal_b = self.loss_b[index] / self.tree_b[root].clamp(min=1e-30)
        normal_d = self.loss_d[index] / self.tree_d[root].clamp(min=1e-30)
        return relative_difficulty(normal_b, normal_d)

    def _remember(self, batch: Batch, ce_b: Tensor, ce_d: Tensor) -> None:
        """Smooth the losses of the whole batch's samples, over all processes, and update the class maxima."""
        index, y, ce_b, ce_d = (engine.gather_rows(t) for t in (batch.index, batch.y, ce_b, ce_d))
        index, order = index.sort(stable=True)
        first = torch.ones_like(index, dtype=torch.bool)
        first[1:] = index[1:] != index[:-1]
        index, rows = index[first], order[first]
        y = y[rows]
        new = self.place[index] < 0
        self._give_places(index[new], y[new])
        node = self.leaves[y] + self.place[index]
        for average, tree, ce in ((self.loss_b, self.tree_b, ce_b[rows]), (self.loss_d, self.tree_d, ce_d[rows])):
            ce = ce.to(average)
            average[index] = torch.where(new, ce, self.cfg.alpha * average[index] + (1 - self.cfg.alpha) * ce)
            tree[self.start[y] + node] = average[index]
        for _ in range(self.depth):
            node = (node // 2).clamp(min=1)
            inner = node < self.leaves[y]  # a tree of one leaf has no inner node; a smaller tree updates its root again
            at, below = (self.start[y] + node)[inner], (self.start[y] + 2 * node)[inner]
            for tree in (self.tree_b, self.tree_d):
                tree[at] = torch.maximum(tree[below], tree[below + 1])

    def _give_places(self, index: Tensor, y: Tensor) -> None:
        """Assign the next free leaves of each class, in the order of sample ids."""
        order = y.argsort(stable=True)
        counts = y.bincount(minlength=len(self.used))
        rank = torch.arange(len(y), device=y.device) - (counts.cumsum(0) - counts)[y[order]]
        self.place[index[order]] = self.used[y[order]] + rank
        self.used += counts
