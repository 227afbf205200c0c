"""The verb `repair`: from a source and a repair's name to a table of weights that any training code can use."""

import dataclasses
import hashlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from unskew import __version__, config, progress, registry
from unskew.data._dataset import DataSet
from unskew.data._sources import as_words, load
from unskew.errors import UserError
from unskew.evaluate.predict import predict
from unskew.evaluate.run import trained_method
from unskew.files import dumps, plain, write_json, write_text
from unskew.measure.representation_bias import FOLDS, BiasEstimate, bias_of_labels
from unskew.methods._base import Method
from unskew.records import Run, Table
from unskew.repair._base import Outcome
from unskew.repair._export import check_folder, whole_folder, write_csv, write_images
from unskew.repair._page import describe, render, verdict
from unskew.representations._base import Spec, compute, spec
from unskew.train.run import train

_TRAINING = ("data", "optim", "train", "select", "model")


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair found. `json` is what the command prints; `table` has one row per sample."""

    json: dict[str, Any]
    table: Table
    path: Path
    page: Path


def repair(
    source: Any,
    method: str,
    *,
    out: str | Path = "weights.parquet",
    how: str = "parquet",
    copy: bool = False,
    measure: Sequence[str] = (),
    splits: Sequence[str] = (),
    model: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: dict[str, Any] | None = None,
    command: str = "",
) -> Repaired:
    """Weight, keep or drop the rows of `source` with the repair `method`; write the table, its JSON and a page.

    `settings` are the repair's own, and with a prefix (data., optim., train., select., model.) those of reading the data and of
    training the network that some repairs need. `how` is parquet, csv or folder (the kept images, as links or, with `copy`, copies).
    """
    out = Path(out)
    module = registry.load("repairs", method)
    own, training = _settings(module, dict(settings or {}))
    cfg = config.build(module.Config, own)
    _check_out(out, how)
    for name in measure:
        spec(name)  # a wrong name is told before the work
    table_path = out / "weights.parquet" if how == "folder" else out.with_suffix(".parquet")
    read = {k.removeprefix("data."): v for k, v in training.items() if k.startswith("data.")}
    data = load(source, **read)
    if how == "folder":
        check_folder(data)
    identity = _identity(method, cfg, training if hasattr(module, "TRAIN") else {}, model, data, seed, splits, measure)
    identity |= {"as": how, "copy": copy}
    done = _claim(table_path, identity, out)
    if done is not None:
        progress.say(f"{out} is finished already: nothing to do")
        return done
    every = _rows(data, tuple(splits) or _own_splits(data, module.SPLITS))
    readable = every[~torch.isin(every, torch.tensor([k for k, _ in data.unreadable], dtype=torch.long))]
    work = _Work(data, readable, seed, out, identity, training, model, device)
    outcome = module.apply(work, cfg)
    _check_outcome(outcome, method)
    measured = _measure(work, outcome, measure, seed)
    found = _found(data, outcome, measured, method, cfg, work, identity, len(every), command)
    found["verdict"] = verdict(found)
    weights = ["--weights", str(table_path), *(["train.weights=sampler"] if method == "gradients" else [])]
    found["next"] = f"unskew train {as_words(data)} {shlex.join(weights)} --out repaired"
    table = _table(data, every, outcome, found)
    if how == "folder":
        with whole_folder(out) as part:
            write_images(data, table, part, copy)
            _write(table, found, data, outcome, part / "weights.parquet")
    else:
        if how == "csv":
            write_csv(table, out)
        _write(table, found, data, outcome, table_path)
    for stale in out.absolute().parent.glob(f".{out.name}.*.state"):  # of this repair, and of ones given up
        stale.unlink()
    return Repaired(found, table, out, table_path.with_suffix(".html"))


def _write(table: Table, found: dict[str, Any], data: DataSet, outcome: Outcome, path: Path) -> None:
    """Page, JSON and, last, the table: its presence says that the repair is whole."""
    write_text(path.with_suffix(".html"), render(found, data, outcome))
    found.pop("gallery")  # pictures are for the page
    write_json(path.with_suffix(".json"), found)
    table.save(path)


@dataclass
class _Work:
    """Features and networks for a repair, made from the parts that stand above it."""

    data: DataSet
    rows: Tensor
    seed: int
    out: Path
    identity: dict[str, Any]
    training: dict[str, Any]
    model: str
    device: str
    used: str = field(default="", init=False)  # the run whose network was used

    @property
    def state(self) -> Path:
        digest = hashlib.sha256(dumps(self.identity).encode()).hexdigest()[:8]
        return self.out.absolute().with_name(f".{self.out.name}.{digest}.state")

    def default_features(self) -> list[str]:
        if len(self.data.shape) == 3:
            return ["color:kind=max"]
        if len(self.data.shape) == 1:
            return ["input"]
        return ["frame"]

    def features(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        reading = self.data.reading
        index, blocks = compute(self.data, [spec(n) for n in names], self.rows, workers=getattr(reading, "workers", 0))
        return index, torch.cat([blocks[n] for n in names], 1)

    def network(self, run: str, method: str) -> nn.Module:
        return self._trained(run, method).model

    def layer(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        self._trained(run, method)
        module = registry.load("representations", "layer")
        one = Spec("layer", module, module.Config(run=self.used))  # not as text: a path may hold a comma
        index, blocks = compute(self.data, [one], self.rows, workers=getattr(self.data.reading, "workers", 0))
        return index, blocks["layer"]

    def logits(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        return predict(self._trained(run, method), self.data, self.rows, workers=getattr(self.data.reading, "workers", 0))

    def _trained(self, run: str, method: str) -> Method:
        """The method of the named run; without a name one is trained beside the table, and kept there."""
        if not run:
            place = self.out.absolute().with_name(f"{self.out.stem}-model")
            settings = {k: v for k, v in self.training.items() if not k.startswith("data.")}
            made = train(
                self.data, method, model=self.model, out=place, seed=self.seed, device=self.device, settings=settings,
                command=f"the {method} model of {self.out.name}",
            )  # fmt: skip
            run = str(made.path)
        self.used = run
        found = trained_method(Run(Path(run)))
        if tuple(found.facts.shape) != self.data.shape or found.facts.num_classes != len(self.data.classes):
            raise UserError(
                f"{run} was trained for inputs of shape {tuple(found.facts.shape)} and {found.facts.num_classes} classes; "
                f"{self.data.name} has {self.data.shape} and {len(self.data.classes)}"
            )
        return found


def _settings(module: Any, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The repair's own settings, and those of reading and training with the repair's defaults filled in."""
    training = {k: v for k, v in given.items() if k.partition(".")[0] in _TRAINING and "." in k}
    own = {k: v for k, v in given.items() if k not in training}
    strange = [k for k in training if not k.startswith("data.")]
    if strange and not hasattr(module, "TRAIN"):
        raise UserError(f"setting {strange[0]!r} is of a training, and this repair trains no network")
    return own, {**getattr(module, "TRAIN", {}), **training}


def _own_splits(data: DataSet, splits: Sequence[str]) -> list[str]:
    """The splits that a repair works on by itself: of test rows only such as were drawn like the training rows."""
    chosen = [s for s in splits if data.has(s) and (s != "test" or "test" in data.carved)]
    return [*chosen, *(["test_biased"] if "test" in splits and data.has("test_biased") else [])]


def _rows(data: DataSet, splits: Sequence[str]) -> Tensor:
    names = list(dict.fromkeys(splits))
    there = [s for s in names if data.has(s)]
    missing = [s for s in names if not data.has(s)]
    if missing or not there:
        raise UserError(
            f"{data.name} has no split {(missing or names)[0]!r}; it has {', '.join(s for s in data.splits if data.has(s))}"
        )
    return torch.cat([data.rows(s) for s in there]).sort().values


def _check_out(out: Path, how: str) -> None:
    endings = {"parquet": ".parquet", "csv": ".csv", "folder": ""}
    if how not in endings:
        raise UserError(f"--as {how}: must be parquet, csv or folder")
    if how != "folder" and out.suffix != endings[how]:
        raise UserError(f"--out {out}: a table written as {how} ends in {endings[how]}")
    if how != "folder" and out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    if not out.name:
        raise UserError(f"--out {out}: name a file or a new folder")
    if how == "folder" and (out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "weights.parquet").is_file())):
        raise UserError(f"{out} exists and is not the result of a repair; choose another --out")


def _identity(
    method: str,
    cfg: Any,
    training: dict[str, Any],
    model: str,
    data: DataSet,
    seed: int,
    splits: Sequence[str],
    measure: Sequence[str],
) -> dict[str, Any]:
    found: dict[str, Any] = plain(
        {
            "repair": method,
            "settings": dataclasses.asdict(cfg),
            "training": {k: str(v) for k, v in sorted(training.items())},
            "model": model,
            "fingerprint": data.fingerprint,
            "bias": list(data.bias_names),
            "seed": seed,
            "splits": list(splits),
            "measure": list(measure),
            # What a representation is made with may change behind its name: the weights of a network.
            "behind": {name: state for name in (*getattr(cfg, "phi", ()), *measure) if (state := spec(name).state)},
        }
    )
    return found


def _claim(path: Path, identity: dict[str, Any], out: Path) -> Repaired | None:
    """What is there already, if it is the same; None if there is nothing; anything else is an error."""
    if not path.is_file():
        return None
    table = Table.read(path)
    there = table.made_by.get("identity")
    if there is None or {"behind": {}, **there} != identity:
        what = (
            "weights made from another source" if there and there["fingerprint"] != identity["fingerprint"] else "something else"
        )
        raise UserError(f"{path} holds {what}, or with other settings; choose another --out, or remove it")
    return Repaired(table.made_by, table, out, path.with_suffix(".html"))


def _check_outcome(outcome: Outcome, method: str) -> None:
    if not bool(torch.isfinite(outcome.weight).all()) or bool((outcome.weight < 0).any()):
        raise UserError(f"{method} gave weights that are not finite; lower its learning rates")
    if float(outcome.weight.sum()) <= 0:
        raise UserError(f"nothing is kept: {method} gave every row weight 0")


def _measure(work: _Work, outcome: Outcome, named: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Representation bias of the rows before and after, for the named representations or those that the repair worked on."""
    data = work.data
    columns = [f"column:name={n}" for n in data.bias_names if "," not in n and "=" not in n]
    names = list(named) or list(outcome.representations) or [*columns, *(work.default_features() if not columns else [])]
    weight = torch.zeros(len(data), dtype=torch.float64)
    weight[outcome.index] = outcome.weight.double()
    found = []
    for name in names:
        index, features = work.features([name])
        y = data.y[index]
        entry: dict[str, Any] = {"name": name}
        for when, w in (("before", None), ("after", weight[index])):
            try:
                _check_classes(data, y)
                entry[when] = _shown(bias_of_labels(features, y, w, seed=seed))
            except UserError as error:
                entry[when] = {"bias": math.nan, "low": math.nan, "high": math.nan, "n": 0, "reason": str(error)}
        found.append(entry)
    return found


def _check_classes(data: DataSet, y: Tensor) -> None:
    if data.multi_label:
        return
    counts = y.bincount(minlength=len(data.classes))
    for name, count in zip(data.classes, counts.tolist(), strict=True):
        if 0 < count < FOLDS:
            raise UserError(
                f"class {name!r} has {count} rows, too few to measure what gives it away; at least {FOLDS} are needed"
            )


def _shown(e: BiasEstimate) -> dict[str, Any]:
    return {"bias": e.bias, "low": e.low, "high": e.high, "n": e.n, "chance": e.chance, "reason": ""}


def _found(
    data: DataSet, outcome: Outcome, measured: list[dict[str, Any]], method: str, cfg: Any, work: _Work,
    identity: dict[str, Any], rows: int, command: str,
) -> dict[str, Any]:  # fmt: skip
    kept = outcome.weight > 0
    figures = {k: v for k, v in outcome.figures.items() if not isinstance(v, Tensor)}
    found: dict[str, Any] = plain(
        {
            "bias_before": measured[0]["before"]["bias"],
            "bias_after": measured[0]["after"]["bias"],
            "kept": int(kept.sum()),
            "rows": rows,
            "unreadable": rows - len(outcome.index),
            "noisy": None if outcome.noisy is None else int(outcome.noisy.sum()),
            "repair": method,
            "settings": dataclasses.asdict(cfg),
            "training": identity["training"],
            "run": work.used,
            "seed": identity["seed"],
            "representations": measured,
            "figures": figures,
            "data": data.describe(),
            "fingerprint": data.fingerprint,
            "identity": identity,
            "command": command,
            "unskew": __version__,
            **describe(data, outcome),
        }
    )
    return found


def _table(data: DataSet, rows: Tensor, outcome: Outcome, found: dict[str, Any]) -> Table:
    """All judged rows in order; one whose file cannot be decoded has weight 0 and no score."""
    weight = torch.zeros(len(data), dtype=torch.float64)
    score = torch.full((len(data),), math.nan, dtype=torch.float64)
    noisy = torch.zeros(len(data), dtype=torch.bool)
    weight[outcome.index], score[outcome.index] = outcome.weight.double(), outcome.score.double()
    if outcome.noisy is not None:
        noisy[outcome.index] = outcome.noisy
    columns: dict[str, Any] = {"index": rows.numpy()}
    if data.paths:
        columns["path"] = [data.paths[i] for i in rows.tolist()]
    if not data.multi_label:
        columns["label"] = [data.classes[c] for c in data.y[rows].tolist()]
    columns |= {
        "split": [data.splits[c] for c in data.split[rows].tolist()],
        "weight": weight[rows].numpy(),
        "keep": (weight[rows] > 0).numpy(),
        "score": score[rows].numpy(),
        "noisy": noisy[rows].numpy(),
    }
    return Table(pl.DataFrame(columns), {"name": "repair", **{k: v for k, v in found.items() if k not in ("gallery", "groups")}})
