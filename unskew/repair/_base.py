"""What a repair is given and what it gives back.

A file of this folder has a frozen dataclass `Config`; `SPLITS`, the splits whose rows it judges unless told otherwise; for one that
needs a trained network, `TRAIN`, the settings of that training; and `apply(work, cfg)`. Formulas stand beside it as plain functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unskew.data._dataset import DataSet
from unskew.errors import UserError


class Work(Protocol):
    """The data at hand, and the two things that a repair cannot make by itself: features and a trained network."""

    data: DataSet
    rows: Tensor  # sample ids to judge
    seed: int
    state: Path | None  # where a long computation may keep what it has, to go on after an interruption

    def features(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """(ids, features) of the rows: the named representations side by side; rows that cannot be decoded are left out."""
        ...

    def default_features(self) -> list[str]:
        """The representation to read when none is named: colour for images, the vector itself for vectors."""
        ...

    def network(self, run: str, method: str) -> nn.Module:
        """The network of a finished run, or one trained now with `method` and the settings at hand."""
        ...

    def layer(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        """(ids, last feature layer of that network) of the rows."""
        ...

    def logits(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        """(ids, logits of that network) of the rows."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row per judged sample. A weight of 0 drops the row."""

    index: Tensor  # (n,) sample ids
    weight: Tensor  # (n,) not negative
    score: Tensor  # (n,) what the weight was made from; its meaning is on the repair's card
    noisy: Tensor | None = None  # (n,) booleans: the label is probably wrong
    figures: dict[str, Any] = field(default_factory=dict)  # what else was found, for the file and the page
    representations: tuple[str, ...] = ()  # that the repair worked on: bias is measured before and after on these


def one_class_per_row(data: DataSet, name: str) -> None:
    if data.multi_label:
        raise UserError(f"{name} needs one class per row, and {data.name} has several labels per row; use balance")


def unit_columns(features: Tensor) -> Tensor:
    """Columns with mean 0 and deviation 1; one that does not vary becomes 0."""
    centred = features.double() - features.double().mean(0)
    return (centred / centred.std(0).clamp(min=1e-12)).to(torch.float32 if features.dtype == torch.float32 else torch.float64)
