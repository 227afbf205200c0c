"""Two sources as one: the training rows of the second are added to those of the first."""

from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Inputs


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
        paths=(*data.paths, *(other.paths[i] for i in chosen.tolist())) if data.paths and other.paths else (),
        notes=(*data.notes, f"{len(chosen)} training rows of {other.source or other.name} added"),
    )
