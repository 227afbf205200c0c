"""Which rows make up which step, as a function of (seed, step): nothing to save, nothing to fast-forward.

Every process draws the whole batch and `engine.shard` takes its part, so weighted and unweighted sampling alike shard over any
number of processes and give the same batches as one.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream

WINDOW = 16  # blocks of shards that a training step may draw from; what a process holds of them is bounded by their reader


@dataclass
class Sampler:
    """Batches of sample ids: without weights a permutation per epoch, with weights draws with replacement.

    Rows inside shards (`blocks`) come in an order that reads each block once, and that depends on the seed alone.
    """

    rows: Tensor  # (M,) sample ids to draw from
    batch: int
    seed: int
    weights: Tensor | None = None  # (M,) probability of each row, up to a factor
    blocks: Tensor | None = None  # (N,) by sample id: rows that are read together; None: any row costs the same
    # The order of the current epoch: a function of its number, cached to save time.
    _order: tuple[int, Tensor] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UserError(f"train.batch={self.batch}: must be at least 1")
        if self.weights is not None:
            if len(self.weights) != len(self.rows):
                raise UserError(f"{len(self.weights)} weights for {len(self.rows)} rows")
            if not bool(torch.isfinite(self.weights).all()) or bool((self.weights < 0).any()):
                raise UserError("sampling weights must be finite and not negative")
            if float(self.weights.sum()) <= 0:
                raise UserError("all sampling weights are 0: nothing can be drawn")

    @property
    def steps_per_epoch(self) -> int:
        full, rest = divmod(len(self.rows), self.batch)
        # Drop a last batch of fewer than eight rows: batch statistics of so few are noise, or undefined.
        return max(1, full + (rest >= min(8, self.batch)))

    def by_id(self, size: int) -> Tensor | None:
        """(size,) the probabilities by sample id, up to a factor; None if all rows are drawn alike."""
        if self.weights is None:
            return None
        chance = torch.zeros(size, dtype=torch.float64)
        chance[self.rows] = self.weights.double()
        return chance

    def epoch(self, number: int) -> Tensor:
        """All ids of one epoch, in order."""
        generator = stream(self.seed, "loader", number)
        if self.weights is not None:
            drawn = self.rows[draw(self.weights, len(self.rows), generator)]
            return drawn if self.blocks is None else drawn[block_order(self.blocks[drawn], generator)]
        if self.blocks is not None:
            return self.rows[block_order(self.blocks[self.rows], generator)]
        return self.rows[torch.randperm(len(self.rows), generator=generator)]

    def at(self, step: int) -> Tensor:
        """The ids of one step's whole batch."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, self.epoch(epoch))
        order = self._order[1]
        return order[place * self.batch : (place + 1) * self.batch]


def block_order(block: Tensor, generator: torch.Generator, window: int = WINDOW) -> Tensor:
    """(M,) a random order of rows that reads every block once: blocks in random order, `window` of them at a time mixed row by row.

    Every row comes once. Of all orders, those that mix rows of distant blocks of the permutation do not occur; within a window all
    are alike likely.

    >>> order = block_order(torch.tensor([0, 0, 0, 5, 5, 5, 2, 2, 2]), torch.Generator().manual_seed(0), window=1)
    >>> sorted(order.tolist()), torch.tensor([0, 0, 0, 5, 5, 5, 2, 2, 2])[order].unique_consecutive().numel()
    ([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)
    """
    code = torch.unique(block, return_inverse=True)[1]
    count = int(code.max()) + 1 if len(code) else 0
    place = torch.empty(count, dtype=torch.long)
    place[torch.randperm(count, generator=generator)] = torch.arange(count)
    mixed = torch.randperm(len(block), generator=generator)  # first any order, then stably by window
    return mixed[(place[code[mixed]] // window).sort(stable=True).indices]


def draw(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` positions drawn with replacement in proportion to `weights`, by inverting their running sum.

    Unlike torch.multinomial, it has no limit on the number of rows and sums in float64.
    """
    running = weights.double().cumsum(0)
    u = torch.rand(count, generator=generator, dtype=torch.float64) * running[-1]
    return torch.searchsorted(running, u, right=True).clamp(max=len(weights) - 1)


def group_weights(group: Tensor) -> Tensor:
    """A weight per row that gives every group the same total probability; rows without a group (-1) get 0.

    >>> group_weights(torch.tensor([0, 0, 0, 1])).tolist()
    [0.3333333333333333, 0.3333333333333333, 0.3333333333333333, 1.0]
    """
    known = group >= 0
    if not bool(known.any()):
        raise UserError("cannot balance groups: every row lacks a bias value")
    counts = group[known].bincount(minlength=int(group.max()) + 1).double()
    return torch.where(known, 1 / counts[group.clamp(min=0)].clamp(min=1), 0.0)


def unit_mean(weights: Tensor) -> Tensor:
    """Weights scaled to mean 1, so that a weighted mean loss keeps the scale of a plain one."""
    total = float(weights.double().sum())
    if not math.isfinite(total) or total <= 0:
        raise UserError("weights must be finite, not negative and not all 0")
    return weights * (len(weights) / total)
