"""config.json: what a run records about itself before the first step."""

import dataclasses
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from torch import Tensor

from unskew.core import config
from unskew.core import engine as processes
from unskew.core.workplace import with_defaults
from unskew.data.dataset import DataSet
from unskew.methods._contract import Method, method_class
from unskew.models import _contract as models
from unskew.training.selection import LOOKS_AT
from unskew.training.settings import RunConfig
from unskew.training.weights import Weights

IDENTITY = ("config", "fingerprint", "bias", "weights")  # what decides the result


def record(cfg: RunConfig, data: DataSet, made: Method, weights: Weights | None, command: str) -> dict[str, Any]:
    """The content of config.json."""
    sees = sorted({"y"} | set(made.sees) | ({"bias"} if cfg.train.sampler == "balanced" else set()))
    # The file format says sampler for chance.
    acting: Literal["loss", "sampler"] = "sampler" if weights is not None and weights.use == "chance" else "loss"
    resolved = config.flat(dataclasses.replace(cfg, train=dataclasses.replace(cfg.train, weights=acting))) | {
        "method": dataclasses.asdict(made.cfg),
        "model": dataclasses.asdict(config.build(models.load(cfg.model_name).config, cfg.model)),
    }
    return {
        "config": resolved,
        "fingerprint": data.fingerprint,
        "bias": data.bias_digest,
        "data": data.describe(),
        "alignment": alignment(data),
        "labels": {"training": sees, "selection": list(LOOKS_AT[cfg.select.rule][1])},
        "weights": None if weights is None else weights.digest,
        "facts": dataclasses.asdict(made.facts),
        "parameters": sum(p.numel() for p in made.parameters()),
        "processes": processes.planned_world(),
        "command": command,
        "versions": versions(),
    }


def identity_there(there: dict[str, Any], data: DataSet, weights: Weights | None, method: str) -> dict[str, Any]:
    """The identity of the run found in a folder, in the current format.

    A setting that did not exist when the run was made counts as its default. Version 0.1 included the bias columns in the
    fingerprint, and identified a table of weights by a number.
    """
    default = config.flat(RunConfig()) | {"method": dataclasses.asdict(method_class(method).Config())}
    default["train"]["weights"] = "loss"
    known = {key: there.get(key) for key in IDENTITY} | {"config": with_defaults(there["config"], default)}
    if "bias" not in there and there.get("fingerprint") == data.former:
        known |= {"fingerprint": data.fingerprint, "bias": data.bias_digest}
    if isinstance(there.get("weights"), float) and weights is not None and there["weights"] == weights.former_digest:
        known["weights"] = weights.digest
    return known


def alignment(data: DataSet) -> dict[str, Any]:
    """The (class, bias value) pairs that are aligned in these training rows, by name; other data is judged by them."""
    found = data.alignment()
    if found is None:
        return {"rule": "none", "pairs": {}, "neither": {}}

    def named(tables: tuple[Tensor, ...]) -> dict[str, list[list[str]]]:
        columns = zip(data.bias_names, data.bias_values, tables, strict=True)
        return {name: [[data.classes[y], values[b]] for y, b in table.nonzero().tolist()] for name, values, table in columns}

    return {"rule": found.rule, "pairs": named(found.aligned), "neither": named(found.neither)}


def versions() -> dict[str, str]:
    installed = {"python": platform.python_version()}
    for name in ("unskew", "torch", "lightning-fabric", "numpy", "polars"):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "not installed"
    return installed
