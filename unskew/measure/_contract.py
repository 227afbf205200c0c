"""What a file in this folder defines: one measure, as plain functions on arrays, tensors and records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unskew.core import registry
from unskew.core.errors import UserError


@dataclass(frozen=True)
class Measure:
    """A loaded file of this folder."""

    name: str
    functions: tuple[Callable[..., Any], ...]  # for users, the main one first
    range: tuple[float, float]  # of the main figure
    higher: str  # what a higher figure means

    def __post_init__(self) -> None:
        if not self.functions or not all(map(callable, self.functions)):
            raise UserError("FUNCTIONS must name at least one function")
        if not self.range[0] < self.range[1]:
            raise UserError(f"RANGE={self.range}: the lower end must come first")


def load(name: str) -> Measure:
    """The measure of this name; a dotted name is a user's module."""
    return registry.load("measures", name, Measure)
