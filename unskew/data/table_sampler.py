"""Samplers for other training loops, from a table of weights; the same draws in one process and in many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl
import torch
from torch import Tensor

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.samplers import draw
from unskew.records import Table


class WeightedSampler(torch.utils.data.Sampler[int]):
    """A torch sampler: sample ids drawn with replacement, with probability proportional to their weight.

    Every process draws the whole epoch from the same stream and takes every world-th draw, so one process sees what many see
    together. Call `set_epoch` before each epoch, as with torch's DistributedSampler.
    """

    def __init__(self, ids: Tensor, weight: Tensor, num_samples: int, seed: int, kind: str, rank: int, world: int) -> None:
        self.ids, self.weight, self.num_samples, self.seed, self.kind = ids, weight, num_samples, seed, kind
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.num_samples // self.world)

    def __iter__(self) -> Iterator[int]:
        generator = stream(self.seed, "sampler", self.epoch)
        count = len(self) * self.world
        pick = reject(self.weight, count, generator) if self.kind == "rejection" else draw(self.weight, count, generator)
        yield from self.ids[pick[self.rank :: self.world]].tolist()


def sampler(
    weights: Table | str | Path,
    *,
    split: str = "train",
    within_split: bool = False,
    num_samples: int = 0,
    kind: Literal["weighted", "rejection"] = "weighted",
    seed: int = 0,
    rank: int | None = None,
    world: int | None = None,
) -> WeightedSampler:
    """A sampler of sample ids (rows of the source) from the table that `unskew repair` wrote.

    `within_split` numbers rows from the start of their split instead, for a Dataset that holds only this split. An epoch has
    `num_samples` draws, by default as many as the split has rows. `rejection` draws rows uniformly and accepts each with its
    weight over the largest, as the papers describe; `weighted` has the same distribution without rejected draws.
    Rank and number of processes come from torch.distributed unless given.
    """
    table = weights if isinstance(weights, Table) else Table.read(Path(weights), ("index", "split", "weight"))
    if kind not in ("weighted", "rejection"):
        raise UserError(f"kind={kind}: must be weighted or rejection")
    frame = table.frame
    if "split" in frame.columns:
        there = frame["split"].unique().to_list()
        if split not in there:
            raise UserError(f"the weights have no split {split!r}; available: {', '.join(map(str, sorted(there)))}")
        table = Table(frame.lazy().filter(pl.col("split") == split).drop("split").collect(), table.made_by)
    ids, weight = table.index, table.column("weight").double()
    if not bool(torch.isfinite(weight).all()) or bool((weight < 0).any()) or float(weight.sum()) <= 0:
        raise UserError("weights must be finite, not negative and not all 0")
    if within_split:
        ids = ids.argsort().argsort()
    return WeightedSampler(
        ids, weight, num_samples or len(ids), seed, kind,
        engine.rank() if rank is None else rank, engine.world() if world is None else world,
    )  # fmt: skip


def reject(weight: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` positions drawn uniformly, each accepted with probability weight / max(weight)."""
    chance = weight.double() / float(weight.max())
    accepted: list[Tensor] = []
    have = 0
    while have < count:
        tries = max(1024, min(10_000_000, int(1.2 * (count - have) / float(chance.mean().clamp(min=1e-6)))))
        rows = torch.randint(0, len(chance), (tries,), generator=generator)
        lucky = rows[torch.rand(tries, generator=generator, dtype=torch.float64) < chance[rows]]
        accepted.append(lucky)
        have += len(lucky)
    return torch.cat(accepted)[:count]
