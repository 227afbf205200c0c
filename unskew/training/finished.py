"""Open a finished run: its method with the trained weights, and the data to judge it on."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, config, registry
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.data.dataset import DataSet
from unskew.data.reading import DataConfig
from unskew.data.sources import load
from unskew.methods._contract import Method
from unskew.nn.weights import without_first_weights
from unskew.records import Facts, Run
from unskew.training.make import from_facts


def open_run(run: Run, source: Any = None) -> tuple[Method, DataSet]:
    """The trained method of a run, and its data set or another `source` whose classes the run knows."""
    run.outcome  # noqa: B018 - raises if the run is not finished
    data = own_data(run) if source is None else other_data(run, source)[0]
    return trained_method(run), data


def trained_method(run: Run) -> Method:
    """The method of a finished run with its trained weights; does not read the data."""
    run.outcome  # noqa: B018 - raises if the run is not finished
    path = run.path / "config.json"
    with registry.named_by(path), refusing(f"{path} does not describe a method that can be built"):
        method = _rebuild(run.whole)
    checkpoint.load_weights(run.path / "model.safetensors", method)
    return method.eval()


def own_data(run: Run, bias: Sequence[str] = ()) -> DataSet:
    """The data set a run was trained on, with its bias columns or those named; raises if it has changed since."""
    record = run.whole
    source = record["data"]["source"]
    if not source:
        raise UserError(f"{run.path} was trained on data passed from Python; pass it again as `on`")
    reading = config.build(DataConfig, record["config"]["data"], "data.")
    reading = dataclasses.replace(reading, bias=tuple(bias)) if bias else reading
    with registry.named_by(run.path / "config.json"):
        data = load(source, reading)
        if not data.is_source(record["fingerprint"]) and "duplicates" not in record["config"]["data"]:
            data = _split_as_before(source, reading, record["fingerprint"]) or data
    same_bias = bool(bias) or record.get("bias", data.bias_digest) == data.bias_digest
    if not data.is_source(record["fingerprint"]) or not same_bias:
        raise UserError(f"{source} has changed since {run.path} was trained on it; name the data to judge on with --on")
    return data


def _split_as_before(source: Any, reading: DataConfig, fingerprint: str) -> DataSet | None:
    """The source as version 0.2 split it: twins apart, and nothing carved beside splits that are given."""
    for holdout in (reading.holdout, 0.0):
        data = load(source, dataclasses.replace(reading, duplicates=False, holdout=holdout))
        if data.is_source(fingerprint):
            return data
    return None


def other_data(run: Run, source: Any, shared_classes: bool = False, any_shape: bool = False) -> tuple[DataSet, Tensor]:
    """Another source with the run's class codes and aligned pairs, and a mask of the rows whose class the run knows.

    With `shared_classes` the source may have other classes; their rows are false in the mask and coded as class 0. With
    `any_shape` its clips may have another number of frames.
    """
    record = run.whole
    # These choose rows and splits of the run's own source and do not apply to another.
    reading = config.build(DataConfig, record["config"]["data"], "data.")
    reading = dataclasses.replace(reading, keep="", group="", order="", duplicates=False)
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
    unknown = [c for c in data.classes if c not in known]
    same = list(data.shape) == record["data"]["shape"] or (any_shape and list(data.shape)[1:] == record["data"]["shape"][1:])
    if (unknown and not shared_classes) or not same:
        what = f"class {unknown[0]!r}, which the run does not know" if unknown else f"shape {data.shape}"
        trained_for = f"classes {', '.join(known[:8])} and shape {tuple(record['data']['shape'])}"
        raise UserError(f"{data.name} has {what}; {run.path} was trained for {trained_for}")
    if shared_classes and data.multi_label:
        raise UserError("--shared-classes needs one class per row; this task has several labels per row")
    codes = torch.tensor([known.index(c) if c in known else 0 for c in data.classes])
    judged = (
        torch.tensor([c in known for c in data.classes])[data.y] if shared_classes else torch.ones(len(data), dtype=torch.bool)
    )
    y = torch.zeros(len(data), len(known)).index_copy_(1, codes, data.y) if data.multi_label else codes[data.y]
    fields = _alignment_of(record["alignment"], data, known)
    return dataclasses.replace(data, y=y, classes=tuple(known), **fields), judged


def _alignment_of(recorded: dict[str, Any], data: DataSet, classes: list[str]) -> dict[str, Any]:
    """The fields of a data set that hold a run's own aligned pairs; runs up to version 0.2 have no pairs that are neither."""
    pairs, neither = recorded["pairs"], recorded.get("neither", {})
    if not data.bias_names or not all(name in pairs for name in data.bias_names):
        return {"aligned_by_design": None}

    def matrices(named: dict[str, list[list[str]]]) -> tuple[Tensor, ...]:
        columns = zip(data.bias_names, data.bias_values, strict=True)
        return tuple(torch.tensor([[[c, v] in named.get(n, []) for v in values] for c in classes]) for n, values in columns)

    rule = recorded["rule"]
    return {"aligned_by_design": matrices(pairs), "neither_by_design": matrices(neither), "alignment_rule": rule}


def _rebuild(record: dict[str, Any]) -> Method:
    """The method as it was built for its training set."""
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
