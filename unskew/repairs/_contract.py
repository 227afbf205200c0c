"""What a file of this folder defines: a repair, from rows to a weight for each of them.

A repair fetches nothing: features, logits and networks are handed to it by `Work`. Formulas stand beside `apply` as plain functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from unskew.core import config, registry
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet


class Work(Protocol):
    """The data at hand, and the two things that a repair cannot make by itself: features and a trained network."""

    data: DataSet
    rows: Tensor  # sample ids to judge
    seed: int

    @property
    def state(self) -> Path | None:
        """Where a long computation may keep what it has, to resume after an interruption."""
        ...

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


Use = Literal["loss", "chance", "keep"]  # how weights act: on the loss, as chances of being drawn, or as rows that stay


@dataclass(frozen=True)
class Repair:
    """A file of this folder, loaded."""

    name: str
    config: type  # frozen dataclass of its settings
    apply: Callable[[Work, Any], Outcome]
    splits: tuple[str, ...]  # whose rows it judges unless told otherwise
    use: Callable[[Any], Use]  # how its weights are meant, given its settings
    train: Mapping[str, Any] | None = None  # settings of the network that it needs; none: it trains none

    def settings(self, given: Mapping[str, Any], where: str = "") -> Any:
        """The repair's own settings, checked."""
        return config.build(self.config, dict(given), where)


def load(name: str) -> Repair:
    """The repair of this name; a dotted name is a user's own module."""
    return registry.load("repairs", name, Repair)


def one_class_per_row(data: DataSet, name: str) -> None:
    if data.multi_label:
        raise UserError(f"{name} needs one class per row, and {data.name} has several labels per row; use balance")


def unit_columns(features: Tensor) -> Tensor:
    """Columns with mean 0 and deviation 1; one that does not vary becomes 0."""
    centred = features.double() - features.double().mean(0)
    return (centred / centred.std(0).clamp(min=1e-12)).to(torch.float32 if features.dtype == torch.float32 else torch.float64)
