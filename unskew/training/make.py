"""Build a method and its network from names and settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, config
from unskew.core.errors import UserError, suggest
from unskew.core.rng import seed_of
from unskew.data.dataset import DataSet
from unskew.methods._contract import Method, method_class
from unskew.models._contract import maker
from unskew.records import Facts


def training_data(name: str, settings: dict[str, Any], data: DataSet) -> DataSet:
    """The data set that the method trains on, including any rows that it adds."""
    cls = method_class(name)
    return cls.training_data(config.build(cls.Config, settings, "method."), data)


def check_data(name: str, settings: dict[str, Any], data: DataSet) -> tuple[str, ...]:
    """The method's remarks on this data, before training starts."""
    cls = method_class(name)
    return cls.check(config.build(cls.Config, settings, "method."), data)


def warm_start(method: Method, run: str) -> None:
    """Start from the network weights of a finished run."""
    if not run:
        return
    path = Path(run) / "model.safetensors"
    if not path.is_file():
        raise UserError(f"train.start={run} is not a finished run: it has no model.safetensors")
    tensors, _ = checkpoint.read(path)
    saved = {k.removeprefix("model."): t for k, t in tensors.items() if k.startswith("model.")}
    own = method.model.state_dict()
    wrong = [k for k in {**own, **saved} if k not in own or k not in saved or own[k].shape != saved[k].shape]
    if wrong:
        raise UserError(
            f"train.start={run} has a network of another architecture: {wrong[0]!r} does not match; "
            "choose the same network with --model"
        )
    method.model.load_state_dict({k: t.to(own[k].dtype) for k, t in saved.items()})


def freeze(method: Method, parts: Sequence[str]) -> None:
    """Parameters of these parts do not learn; statistics of batch normalisation still follow, as in the released codes."""
    for part in parts:
        found = [p for name, p in method.named_parameters() if name == part or name.startswith(f"{part}.")]
        if not found:
            known = {name.rpartition(".")[0] for name, _ in method.named_parameters()}
            raise UserError(f"train.freeze={part}: the method has no such part{suggest(part, known)}")
        for parameter in found:
            parameter.requires_grad_(False)


def make_method(
    name: str,
    settings: dict[str, Any],
    model: str,
    model_settings: dict[str, Any],
    data: DataSet,
    seed: int,
    weight: Tensor | None = None,
) -> Method:
    """A new method, initialised from the run's own random stream. Rows of `weight` 0 are hidden from it."""
    cls = method_class(name)
    cfg: Any = config.build(cls.Config, settings, "method.")  # reject a bad setting before reading labels
    return from_facts(name, settings, model, model_settings, data.facts(cls.labels(cfg), weight), seed)


def from_facts(
    name: str, settings: dict[str, Any], model: str, model_settings: dict[str, Any], facts: Facts, seed: int
) -> Method:
    cls = method_class(name)
    cfg: Any = config.build(cls.Config, settings, "method.")
    make = maker(model, model_settings, facts.shape, facts.num_classes)
    with torch.random.fork_rng():
        torch.manual_seed(seed_of(seed, "weights"))
        return cls(cfg, facts, make)
