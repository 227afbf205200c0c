"""A finished run, opened: its method with the trained weights, and the data that it can be judged on."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, config
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.reading import DataConfig
from unskew.data.sources import load
from unskew.methods._contract import Method
from unskew.nn.weights import without_first_weights
from unskew.records import Facts, Run
from unskew.training.make import from_facts


def open_run(run: Run, source: Any = None) -> tuple[Method, DataSet]:
    """The trained method of a run and its data set, or another `source` with classes that the run knows."""
    run.outcome  # noqa: B018 - raises if the run is not finished
    data = own_data(run) if source is None else other_data(run, source)[0]
    return trained_method(run), data


def trained_method(run: Run) -> Method:
    """The method of a finished run with its weights, whatever data it will be shown."""
    run.outcome  # noqa: B018 - raises if the run is not finished
    method = _rebuild(run.config)
    checkpoint.load_weights(run.path / "model.safetensors", method)
    return method.eval()


def own_data(run: Run) -> DataSet:
    """The data set a run was trained on, unchanged since."""
    record = run.config
    named = record["data"]["source"]
    if not named:
        raise UserError(f"{run.path} was trained on data from Python: give it again, as `on`")
    data = load(named, config.build(DataConfig, record["config"]["data"], "data."))
    if not data.is_source(record["fingerprint"]) or record.get("bias", data.bias_digest) != data.bias_digest:
        raise UserError(f"{named} has changed since {run.path} was trained on it; name the data to judge on with --on")
    return data


def other_data(run: Run, source: Any, shared_classes: bool = False) -> tuple[DataSet, Tensor]:
    """Another source, its labels in the run's codes, its aligned pairs those of the run's training rows; and whose class is known.

    With `shared_classes` the source may have classes that the run does not know; their rows, marked false, are coded as class 0.
    """
    record = run.config
    # What was left out of the run's own training rows says nothing of another source.
    reading = dataclasses.replace(config.build(DataConfig, record["config"]["data"], "data."), keep="")
    try:
        data = load(source, reading)
    except UserError as error:
        if "no bias column" not in str(error):
            raise
        data = load(source, dataclasses.replace(reading, bias=()))  # judged without groups
    known = record["data"]["classes"]
    if data.multi_label != record["data"]["multi_label"]:
        kinds = ("one class per row", "several labels per row")
        raise UserError(f"{data.name} has {kinds[data.multi_label]}; {run.path} was trained for {kinds[not data.multi_label]}")
    strange = [c for c in data.classes if c not in known]
    if (strange and not shared_classes) or list(data.shape) != record["data"]["shape"]:
        what = f"class {strange[0]!r}, which the run does not know" if strange else f"shape {data.shape}"
        raise UserError(f"{data.name} has {what}; it was trained for {', '.join(known[:8])} and {tuple(record['data']['shape'])}")
    if shared_classes and data.multi_label:
        raise UserError("--shared-classes ranks rows of one class each; this task has several labels per row")
    place = torch.tensor([known.index(c) if c in known else 0 for c in data.classes])
    judged = (
        torch.tensor([c in known for c in data.classes])[data.y] if shared_classes else torch.ones(len(data), dtype=torch.bool)
    )
    y = torch.zeros(len(data), len(known)).index_copy_(1, place, data.y) if data.multi_label else place[data.y]
    pairs = record["alignment"]["pairs"]
    aligned = None
    if data.bias_names and all(name in pairs for name in data.bias_names):
        aligned = tuple(
            torch.tensor([[[c, v] in pairs[name] for v in values] for c in known])
            for name, values in zip(data.bias_names, data.bias_values, strict=True)
        )
    return dataclasses.replace(data, y=y, classes=tuple(known), aligned_by_design=aligned), judged


def _rebuild(record: dict[str, Any]) -> Method:
    """The method as it was made: sized by its own training set, whatever it is judged on."""
    cfg, saved = record["config"], dict(record["facts"])
    facts = Facts(
        class_counts=torch.tensor(saved["class_counts"]),
        rows=saved.get("rows", 0),
        size=saved["size"],
        shape=tuple(saved["shape"]),
        multi_label=saved["multi_label"],
        group_counts=None if saved["group_counts"] is None else torch.tensor(saved["group_counts"]),
        bias_sizes=tuple(saved["bias_sizes"]),
        mean=tuple(saved.get("mean", ())),
        std=tuple(saved.get("std", ())),
    )
    with without_first_weights():
        method = from_facts(cfg["method_name"], cfg["method"], cfg["model_name"], cfg["model"], facts, cfg["seed"])
    return method.double() if cfg["train"]["precision"] == "64-true" else method
