"""The verb `evaluate`: logits by sample id, group tables and the named averages, from a finished run."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew import checkpoint, config
from unskew.data._dataset import DataSet
from unskew.data._sources import DataConfig, load
from unskew.engine import check_device
from unskew.errors import UserError
from unskew.evaluate.attack import LeakageConfig, leakage_of, predict_and_embed
from unskew.evaluate.corrupt import accuracy_under
from unskew.evaluate.predict import predict
from unskew.evaluate.temporal import check_clips, temporal_structure
from unskew.evaluate.texture import accuracy_by_texture
from unskew.files import write_json
from unskew.measure.cross_dataset import cross_dataset
from unskew.measure.groups import groups
from unskew.measure.label_sets import by_bias, label_sets
from unskew.measure.leakage import Attack
from unskew.methods._base import Method
from unskew.methods._make import from_facts
from unskew.models._weights import without_first_weights
from unskew.records import Facts, Groups, Run, Table
from unskew.representations._base import spec


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """What `evaluate` found on one split."""

    groups: Groups  # over all bias columns together
    by_bias: dict[str, Groups]  # one bias column at a time, where there are several
    predictions: Table
    metrics: dict[str, Any]  # the JSON of the command
    data: DataSet
    rows: Tensor  # sample ids judged


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
    if data.fingerprint != record["fingerprint"]:
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


def evaluate(
    run: Run | str | Path,
    on: Any = None,
    *,
    split: str = "test",
    device: str = "auto",
    leakage: bool = False,
    attack: Attack | None = None,
    noise: Sequence[float] = (),
    alpha: float = 0.0,
    rba: float = 0.0,
    corruptions: Sequence[str] = (),
    textures: str = "",
    temporal: bool = False,
    shared_classes: bool = False,
) -> Judgement:
    """One forward pass over a split; predictions and metrics go into the run's folder.

    `leakage` also asks how well each bias column can be guessed from the logits: by fresh attackers, trained from nothing on a part
    of these rows and judged on another, whatever the model was trained against. `noise` asks it again with Gaussian noise on the
    embedding, `alpha` on an alpha-balanced subset of the rows, `rba` also after calibration within this margin.
    `corruptions` names ways to spoil the images, each tried at five strengths. `textures` names a representation; accuracy is also
    averaged over cells of its clusters and the classes. `temporal` asks how much features of clips change when played backwards.
    `shared_classes` lets `on` have other classes, judges the rows whose class the run knows, and adds average precision.
    """
    asked = LeakageConfig(noise=tuple(noise), alpha=alpha, rba=rba, attack=attack)
    if (noise or alpha or rba) and not leakage:
        raise UserError("noise, alpha and rba are questions about leakage: ask for it too, with --leakage")
    run = run if isinstance(run, Run) else Run(Path(run))
    target = check_device(device)
    if shared_classes and on is None:
        raise UserError("--shared-classes is for another source: name it with --on")
    if textures:
        spec(textures)  # a wrong name is told before the work
    data, known = (own_data(run), None) if on is None else other_data(run, on, shared_classes)
    if temporal:
        check_clips(data)
    method = trained_method(run)
    # A source without splits of its own is judged whole: none of its rows was trained on.
    rows = data.rows(split) if on is None or split not in data.carved else torch.arange(len(data))
    if known is not None:
        rows = rows[known[rows]]
        if not len(rows):
            raise UserError(f"no row of {data.name} has a class that the run knows: {', '.join(data.classes[:8])}")
    workers, embedding = run.config["config"]["data"]["workers"], None
    if noise:
        index, logits, embedding = predict_and_embed(method.to(target), data, rows, workers=workers)
    else:
        index, logits = predict(method.to(target), data, rows, workers=workers)
    table = Table(
        pl.DataFrame({"index": index.numpy(), "y": data.y[index].tolist(), "logits": logits.tolist()}),
        {"name": "evaluate", "run": str(run.path), "fingerprint": data.fingerprint, "split": split},
    )
    found = _judgement(run, data, table, split)
    place = split if on is None else f"{split}-{data.fingerprint[:8]}"
    if leakage:
        trained_on = own_data(run) if rba and on is not None else data
        more = leakage_of(
            logits, data, index, asked, run.config["config"]["seed"], embedding=embedding, trained_on=trained_on
        )  # fmt: skip
    else:
        more = _known(run, place, ("leakage", "leakage_by_bias"))
    if corruptions:
        seed = run.config["config"]["seed"]
        more["corruptions"] = accuracy_under(method, data, index, corruptions, seed=seed, workers=workers)
    else:
        more |= _known(run, place, ("corruptions",))
    if textures:
        more["textures"] = accuracy_by_texture(logits, data, index, textures, workers=workers)
    else:
        more |= _known(run, place, ("textures",))
    if temporal:
        more["temporal"] = temporal_structure(method, data, index, workers=workers)
    else:
        more |= _known(run, place, ("temporal",))
    if shared_classes:
        ranked = cross_dataset(logits, data.classes, data.y[index], data.classes)
        more["cross_dataset"] = dataclasses.asdict(ranked)
    found = dataclasses.replace(found, metrics={**found.metrics, **more})
    table.save(run.path / "predictions" / f"{place}.parquet")
    write_json(run.path / f"metrics-{place}.json", found.metrics)
    return found


def recall(run: Run, split: str = "test", on: Any = None) -> Judgement:
    """The judgement of a run from its saved predictions; made now if it has none."""
    path = run.path / "predictions" / f"{split}.parquet"
    if on is not None or not path.is_file():
        return evaluate(run, on, split=split)
    table = Table.read(path)
    data = own_data(run)
    if data.fingerprint != table.made_by.get("fingerprint"):
        raise UserError(f"{data.source} has changed since {run.path} was judged on it")
    found = _judgement(run, data, table, split)
    return dataclasses.replace(
        found,
        metrics={**found.metrics, **_known(run, split, ("leakage", "leakage_by_bias", "corruptions", "textures", "temporal"))},
    )


def _known(run: Run, place: str, keys: Sequence[str]) -> dict[str, Any]:
    """What was found before on the same rows and takes minutes: it is asked for once."""
    saved = run.path / f"metrics-{place}.json"
    known = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else {}
    return {k: known[k] for k in keys if k in known}


def _judgement(run: Run, data: DataSet, table: Table, split: str) -> Judgement:
    index, logits = table.index, table.column("logits").float()
    found = judge(logits, data, index)
    by_bias = {}
    if len(data.bias_names) > 1:
        by_bias = {name: judge(logits, data.only_bias([name]), index) for name in data.bias_names}
    metrics = {
        "run": str(run.path),
        "split": split,
        "on": data.source or data.name,
        "selection": run.outcome["selection"],
        "labels": run.config["labels"],
        "aligned_rule": run.config["alignment"]["rule"],
        **found.json(),
        **({"by_bias": {name: g.json() for name, g in by_bias.items()}} if by_bias else {}),
        **multi_label_metrics(logits, data, index),
    }
    return Judgement(found, by_bias, table, metrics, data, index)


def judge(logits: Tensor, data: DataSet, index: Tensor) -> Groups:
    aligned, _ = data.aligned()
    return groups(
        logits,
        data.y[index],
        data.bias[index] if data.bias_names else None,
        aligned=aligned,
        classes=data.classes,
        bias_names=data.bias_names,
        bias_values=data.bias_values,
    )


def multi_label_metrics(logits: Tensor, data: DataSet, index: Tensor) -> dict[str, Any]:
    """Macro F1 at probability one half and mean average precision, and both by label and bias value."""
    if not data.multi_label:
        return {}
    y = data.y[index]
    found = label_sets(logits, y)
    labels: list[dict[str, Any]] = [
        {"label": name, **numbers} for name, numbers in zip(data.classes, found.per_label, strict=True)
    ]
    for k, (bias, values) in enumerate(zip(data.bias_names, data.bias_values, strict=True)):
        for row, cells in zip(labels, by_bias(logits, y, data.bias[index, k], len(values)), strict=True):
            row.setdefault("by_bias", {})[bias] = dict(zip(values, cells, strict=True))
    return {
        "f1_macro": found.f1,
        "average_precision": found.average_precision,
        "label_intervals": {"f1_macro": found.f1_interval, "average_precision": found.average_precision_interval},
        "labels_judged": found.judged,
        "per_label": labels,
    }
