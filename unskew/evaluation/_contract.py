"""What a file of this folder defines: a question about a judged run, and the record that answers it.

The record is a frozen dataclass with `json()`. Its numeric fields are what a suite may name as columns: `leakage.model` is the field
`model` of the record of `leakage`.
"""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.methods._contract import Method
from unskew.records import Run
from unskew.training.predict import predict


@dataclass(frozen=True)
class Judged:
    """What a question is asked about: a run's logits on some rows, and what they belong to."""

    run: Run
    method: Method
    data: DataSet
    index: Tensor  # sample ids judged
    logits: Tensor
    trained_on: Callable[[], DataSet]  # the data whose training rows the run has seen

    @property
    def seed(self) -> int:
        return int(self.run.config["config"]["seed"])

    @property
    def workers(self) -> int:
        return int(self.run.config["config"]["data"]["workers"])

    @cached_property
    def embedding(self) -> "Embedding":
        """What the network's last module was given, by one more forward pass."""
        return embed(self.method, self.data, self.index, self.logits, self.workers)


@dataclass(frozen=True)
class Embedding:
    """What the network's last module sees, and that module: logits with noise on the embedding need no second pass."""

    h: Tensor  # (N, D)
    output: torch.nn.Module

    def logits(self, h: Tensor) -> Tensor:
        """What the last module makes of an embedding."""
        parameter = next(self.output.parameters())
        with torch.inference_mode():
            made: Tensor = self.output(h.to(parameter.device, parameter.dtype))
        return made.float().cpu()


def embed(method: Method, data: DataSet, index: Tensor, logits: Tensor, workers: int = 0) -> Embedding:
    """The embedding of rows whose logits are known."""
    output = getattr(method.model, "output", None)
    if not isinstance(output, torch.nn.Linear):
        raise UserError("noise on the embedding needs a network whose last module is linear")
    seen: list[Tensor] = []
    handle = output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().float().cpu()))
    try:
        predict(method, data, index, workers=workers)
    finally:
        handle.remove()
    made = Embedding(torch.cat(seen), output)
    again = made.logits(made.h)
    if again.shape != logits.shape or not torch.allclose(again, logits, rtol=1e-3, atol=1e-3):
        raise UserError("noise on the embedding: the run's logits are not made by its network's last module alone")
    return made


class Answer(Protocol):
    """A record that answers a question."""

    def json(self) -> dict[str, Any]:
        """Its part of the JSON of `evaluate`, by the name of the question."""
        ...


def _nothing(data: DataSet, options: Any) -> None:
    return None


@dataclass(frozen=True)
class Question:
    """A file of this folder, loaded."""

    name: str
    options: type  # frozen dataclass: the arguments of `evaluate` that belong to it
    record: type  # what answers it
    ask: Callable[[Judged, Any], Answer]
    keys: tuple[str, ...]  # of the JSON, the record's own first
    shares: bool = True  # whether its figures are shares, shown in per cent
    check: Callable[[DataSet, Any], None] = _nothing  # reject data that cannot be asked, before the work

    @property
    def arguments(self) -> dict[str, Any]:
        """Names and types of its options."""
        hints = typing.get_type_hints(self.options)
        return {f.name: hints[f.name] for f in dataclasses.fields(self.options)}

    def wanted(self, given: Mapping[str, Any]) -> bool:
        """Whether the first of its options, which asks the question, is given."""
        return bool(given.get(next(iter(self.arguments))))

    @property
    def figures(self) -> frozenset[str]:
        """Names of the numbers of its record, and of an optional record inside it."""
        hints = typing.get_type_hints(self.record)
        return frozenset(name for name, hint in hints.items() if hint is float or _is_record(hint))


def _is_record(hint: Any) -> bool:
    return type(None) in typing.get_args(hint) and any(map(dataclasses.is_dataclass, typing.get_args(hint)))


def load(name: str) -> Question:
    """The question of this name."""
    return registry.load("questions", name, Question)


def questions() -> list[Question]:
    """All of them, in the order of their names."""
    return [load(name) for name in registry.names("questions")]
