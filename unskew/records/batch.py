"""What a training step sees, and what a method may know before the first one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one training step sees. Columns the method did not ask for are None."""

    index: Tensor  # (B,) sample id: row in the full data set, the same in every split and epoch
    x: Tensor  # (B, D) vectors, (B, C, H, W) images or (B, T, C, H, W) clips
    y: Tensor  # (B,) class, or (B, L) zeros and ones of a multi-label task
    bias: Tensor | None = None  # (B, A) codes of the bias columns, -1 where missing; only if `sees` includes "bias"
    group: Tensor | None = None  # (B,) code of (y, bias), see stats.groups.group_id; same rule
    weight: Tensor | None = None  # (B,) from a repair table, mean 1 over the training rows

    def need(self, column: str) -> Tensor:
        value: Tensor | None = getattr(self, column)
        if value is None:
            raise LookupError(f"batch has no {column!r}: declare sees = frozenset({{'bias'}})")
        return value

    def mean(self, per_sample: Tensor) -> Tensor:
        """The mean loss of the batch, weighted by a repair if there is one."""
        return (per_sample if self.weight is None else self.weight * per_sample).mean()

    def columns(self) -> dict[str, Tensor]:
        """The columns that are not None, by name."""
        pairs = ((name, getattr(self, name)) for name in ("index", "x", "y", "bias", "group", "weight"))
        return {name: value for name, value in pairs if value is not None}


class Update(Protocol):
    """Passed to a method's `step`: one descent on the loss terms of a part, by the named optimisers."""

    def __call__(self, batch: Batch, part: str = "", optimizers: Iterable[str] | None = None) -> dict[str, Tensor]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a method may know about its training set before the first step."""

    class_counts: Tensor  # (C,) rows per class, or (L,) positives per label
    rows: int = 0  # rows of the training split
    size: int  # rows of the full data set; per-sample state is sized by it and addressed by Batch.index
    shape: tuple[int, ...]  # of one input
    multi_label: bool = False
    group_counts: Tensor | None = None  # (G,), under the same rule as Batch.group
    bias_sizes: tuple[int, ...] = ()  # number of values of each bias column; empty unless `sees` includes "bias"
    mean: tuple[float, ...] = ()  # per channel, subtracted from the inputs; empty: not normalised
    std: tuple[float, ...] = ()

    @property
    def num_classes(self) -> int:
        return int(self.class_counts.numel())

    @property
    def label_weight(self) -> Tensor:
        """(L,) rows without a label over rows with it: the class weight of Wang et al. for multi-label tasks."""
        positives = self.class_counts.double().clamp(min=1)
        return ((self.rows - positives).clamp(min=1) / positives).float()
