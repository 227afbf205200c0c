"""Two sources as one: the training rows of the second are added to those of the first."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Inputs
from unskew.data.texts import Content, Texts, contents


@dataclass(frozen=True)
class _Joined:
    """The inputs of one source, then chosen rows of another."""

    first: Inputs
    second: Inputs
    rows_of_first: int
    chosen: Tensor  # rows of the second

    @property
    def shape(self) -> tuple[int, ...]:
        return self.first.shape

    @property
    def in_memory(self) -> bool:
        return self.first.in_memory and self.second.in_memory

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        late = index >= self.rows_of_first
        x, fine = self.first.rows(index.clamp(max=self.rows_of_first - 1))
        if bool(late.any()):
            x, fine = x.clone(), fine.clone()
            other, other_fine = self.second.rows(self.chosen[index[late] - self.rows_of_first])
            x[late], fine[late] = other.to(x.dtype), other_fine
        return x, fine


class _Paths(Texts):
    """The paths of one source, then those of chosen rows of another, each opened as its own source does."""

    def __init__(self, first: Sequence[str], second: Sequence[str], chosen: Tensor) -> None:
        self.first, self.second, self.chosen = first, second, chosen
        whole = Texts.joined([Texts.of(first), Texts.of(second[k] for k in chosen.tolist())])
        super().__init__(whole.raw, whole.starts)

    def contents(self, rows: Sequence[int]) -> Sequence[Content]:
        late = [k >= len(self.first) for k in rows]
        early = iter(contents(self.first, [k for k, after in zip(rows, late, strict=True) if not after]))
        moved = [int(self.chosen[k - len(self.first)]) for k, after in zip(rows, late, strict=True) if after]
        added = iter(contents(self.second, moved))
        return [next(added if after else early) for after in late]


def _blocks(data: DataSet, other: DataSet, chosen: Tensor) -> Tensor | None:
    """The blocks of both; rows that cost the same in any order count as blocks of a thousand."""
    if data.blocks is None and other.blocks is None:
        return None
    first = torch.arange(len(data)) // 1000 if data.blocks is None else data.blocks.long()
    second = torch.arange(len(other)) // 1000 if other.blocks is None else other.blocks.long()
    return torch.cat([first, second[chosen] + int(first.max()) + 1])


def union(data: DataSet, other: DataSet) -> DataSet:
    """`data` plus the training rows of `other`: sample ids of `data` do not change, bias values of the added rows are missing."""
    strange = [c for c in other.classes if c not in data.classes]
    several = next((d.name for d in (other, data) if d.multi_label), "")
    if several:
        raise UserError(f"{other.name} cannot be added to {data.name}: rows of {several} have several labels")
    if strange or other.shape != data.shape:
        what = f"class {strange[0]!r}, which {data.name} lacks" if strange else f"inputs of shape {other.shape}, not {data.shape}"
        raise UserError(f"{other.name} cannot be added to {data.name}: it has {what}")
    chosen = other.rows("train")
    place = torch.tensor([data.classes.index(c) for c in other.classes])
    return data.derived(
        f" {other.fingerprint}",
        inputs=_Joined(data.inputs, other.inputs, len(data), chosen),
        y=torch.cat([data.y, place[other.y[chosen]]]),
        split=torch.cat([data.split, torch.full((len(chosen),), data.splits.index("train"))]),
        bias=torch.cat([data.bias, torch.full((len(chosen), data.bias.shape[1]), -1)]),
        columns=pl.DataFrame(),
        duplicate_of=None,
        paths=_Paths(data.paths, other.paths, chosen) if data.paths and other.paths else (),
        blocks=_blocks(data, other, chosen),
        notes=(*data.notes, f"{len(chosen)} training rows of {other.source or other.name} added"),
    )
