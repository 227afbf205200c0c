"""What a file in this folder defines: a question about a judged run, and the record that answers it.

The record is a frozen dataclass with `json()`. A suite may name its numeric fields as columns: `leakage.model` is the field
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
    """What a question is about: a run's predictions on some rows, with the run, its method and the data."""

    run: Run
    method: Method
    data: DataSet
    index: Tensor  # sample ids of the judged rows
    read_logits: Callable[[], Tensor]
    trained_on: Callable[[], DataSet]  # the data that the run was trained on

    @property
    def seed(self) -> int:
        return int(self.run.config["config"]["seed"])

    @property
    def workers(self) -> int:
        return int(self.run.config["config"]["data"]["workers"])

    @cached_property
    def logits(self) -> Tensor:
        """(n, C) of the judged rows, in memory: only a question that needs them all asks."""
        return self.read_logits()

    @cached_property
    def embedding(self) -> "Embedding":
        """The input of the network's last module, from one more forward pass."""
        return embed(self.method, self.data, self.index, self.logits, self.workers)


@dataclass(frozen=True)
class Embedding:
    """The input of the network's last module, and that module: adding noise to the embedding needs no second pass."""

    h: Tensor  # (N, D)
    output: torch.nn.Module

    def logits(self, h: Tensor) -> Tensor:
        """The logits that the last module gives for an embedding."""
        parameter = next(self.output.parameters())
        with torch.inference_mode():
            logits: Tensor = self.output(h.to(parameter.device, parameter.dtype))
        return logits.float().cpu()


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
    embedding = Embedding(torch.cat(seen), output)
    again = embedding.logits(embedding.h)
    if again.shape != logits.shape or not torch.allclose(again, logits, rtol=1e-3, atol=1e-3):
        raise UserError("noise on the embedding: the run's logits do not come from its network's last module alone")
    return embedding


class Answer(Protocol):
    """A record that answers a question."""

    def json(self) -> dict[str, Any]:
        """Its part of the JSON of `evaluate`, under the keys of the question."""
        ...


def _nothing(data: DataSet, options: Any) -> None:
    return None


@dataclass(frozen=True)
class Question:
    """A loaded file of this folder."""

    name: str
    options: type  # frozen dataclass: its arguments of `evaluate`
    record: type  # the class of its answer
    ask: Callable[[Judged, Any], Answer]
    keys: tuple[str, ...]  # its keys in the JSON, the record's own first
    shares: bool = True  # its figures are shares, shown in per cent
    check: Callable[[DataSet, Any], None] = _nothing  # reject unsuitable data before the work

    @property
    def arguments(self) -> dict[str, Any]:
        """The names and types of its options."""
        hints = typing.get_type_hints(self.options)
        return {f.name: hints[f.name] for f in dataclasses.fields(self.options)}

    def wanted(self, given: Mapping[str, Any]) -> bool:
        """Whether its first option is given, which is the one that asks the question."""
        return bool(given.get(next(iter(self.arguments))))

    @property
    def figures(self) -> frozenset[str]:
        """The names of its record's numbers and of an optional record inside it."""
        hints = typing.get_type_hints(self.record)
        return frozenset(name for name, hint in hints.items() if hint is float or _is_record(hint))


def _is_record(hint: Any) -> bool:
    return type(None) in typing.get_args(hint) and any(map(dataclasses.is_dataclass, typing.get_args(hint)))


def load(name: str) -> Question:
    """The question of this name."""
    return registry.load("questions", name, Question)


def questions() -> list[Question]:
    """All questions, sorted by name."""
    return [load(name) for name in registry.names("questions")]
