"""What a file in this folder defines: a repair, from rows to a weight for each.

A repair fetches nothing: `Work` provides features, logits and networks. Formulas are plain functions next to `apply`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from unskew.core import config, registry
from unskew.core.errors import UserError
from unskew.core.matrix import Matrix, Rows
from unskew.data.dataset import DataSet
from unskew.stats.streamed import Scaled, moments

MANY = 1_000_000  # rows that are not standardised all at once


class Work(Protocol):
    """The data, and the two things a repair cannot compute itself: features and a trained network."""

    data: DataSet
    rows: Tensor  # sample ids to weight
    seed: int

    @property
    def workers(self) -> int:
        """Processes that decode, for what reads inputs."""
        ...

    @property
    def state(self) -> Path | None:
        """A file in which a long computation may save its state, to resume after an interruption."""
        ...

    def features(self, names: Sequence[str]) -> tuple[Tensor, Rows]:
        """(ids, features) of the readable rows: the named representations, side by side; in a file if they are many."""
        ...

    def default_features(self) -> list[str]:
        """The representations to read if none is named: colour for images, the vector itself for vectors."""
        ...

    def network(self, run: str, method: str) -> nn.Module:
        """The network of a finished run, or one trained now with `method` and the given settings."""
        ...

    def layer(self, run: str, method: str) -> tuple[Tensor, Rows]:
        """(ids, last feature layer of that network) of the rows."""
        ...

    def seen_by(self, network: nn.Module) -> DataSet:
        """The data set with the inputs that the network takes: features computed before, if it is frozen."""
        ...

    def reference(self, steps: int, folds: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """(ids, held-out logits, features) of a simple model: logits are (n, C), or (n, L, 2) for several labels per row; features are
        those that it is a linear layer of, if it is one."""
        ...

    def opinion(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        """(ids, the class that that network says) of the rows."""
        ...

    def logits(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        """(ids, logits of that network) of the rows."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One entry per weighted sample. Weight 0 drops the row."""

    index: Tensor  # (n,) sample ids
    weight: Tensor  # (n,) not negative
    score: Tensor  # (n,) what the weight was computed from; the repair's card says what it means
    noisy: Tensor | None = None  # (n,) booleans: the label is probably wrong
    figures: dict[str, Any] = field(default_factory=dict)  # other results, for the file and the page
    opinion: Tensor | None = None  # (n,) the class that a biased model would say, if the repair has one
    representations: tuple[str, ...] = ()  # used by the repair; their bias is measured before and after


Use = Literal["loss", "chance", "keep"]  # weights multiply the loss, are probabilities of being drawn, or mark rows to keep


@dataclass(frozen=True)
class Repair:
    """A loaded file of this folder."""

    name: str
    config: type  # frozen dataclass of its settings
    apply: Callable[[Work, Any], Outcome]
    splits: tuple[str, ...]  # splits whose rows it weights by default
    use: Callable[[Any], Use]  # how its weights are meant, given its settings
    train: Mapping[str, Any] | None = None  # settings of the network it needs; none: it trains none

    def settings(self, given: Mapping[str, Any], where: str = "") -> Any:
        """The repair's settings, checked."""
        return config.build(self.config, dict(given), where)


def load(name: str) -> Repair:
    """The repair of this name; a dotted name is a user's module."""
    return registry.load("repairs", name, Repair)


def one_class_per_row(data: DataSet, name: str) -> None:
    if data.multi_label:
        raise UserError(f"{name} needs one class per row, but {data.name} has several labels per row; use balance")


def unit_rows(features: Rows) -> Tensor | Scaled:
    """`unit_columns` of any number of rows: computed when they are asked for, if they are in a file or many."""
    if isinstance(features, Matrix) or len(features) >= MANY:
        return Scaled(features, moments(features))
    return unit_columns(features)


def unit_columns(features: Tensor) -> Tensor:
    """Columns with mean 0 and standard deviation 1; a constant one becomes 0."""
    centred = features.double() - features.double().mean(0)
    return (centred / centred.std(0).clamp(min=1e-12)).to(torch.float32 if features.dtype == torch.float32 else torch.float64)
