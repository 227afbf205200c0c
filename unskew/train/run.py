"""The verb `train`: from a source and a method's name to a run folder, resumable at any moment."""

import dataclasses
import platform
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew import checkpoint, config, progress, registry
from unskew import engine as processes
from unskew.data._augment import preset
from unskew.data._dataset import DataSet
from unskew.data._loader import Loader
from unskew.data._samplers import Sampler, group_weights, unit_mean
from unskew.data._sources import DataConfig, load
from unskew.durations import steps_of
from unskew.engine import Engine
from unskew.errors import UserError
from unskew.evaluate.predict import predict
from unskew.evaluate.select import LOOKS_AT, SelectConfig, better, check, score
from unskew.files import Busy, alone, dumps, write_json
from unskew.methods._base import Method
from unskew.methods._make import check_data, default_model, make_method, method_class, training_data, warm_start
from unskew.records import Run, Table
from unskew.train.claim import check_place, claim
from unskew.train.fit import NonFinite, TrainConfig, fit
from unskew.train.optim import OptimConfig, make_optimizer, schedule_factor

SAVE_SECONDS = 30.0  # between two saved states of a training whose steps are slow
_PARTS = ("data", "optim", "train", "select", "model", "method")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides what a run computes."""

    method_name: str = "erm"
    model_name: str = ""
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    model: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)


def read_settings(values: dict[str, Any], **given: Any) -> RunConfig:
    """`train.epochs=3` and the like as a RunConfig; a key of no part of it is the method's."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in _PARTS}
    for key, value in values.items():
        head, _, tail = key.partition(".")
        if isinstance(value, dict) and head in parts and not tail:
            parts[head].update(value)
        elif head in parts and tail:
            parts[head][tail] = value
        elif head in parts:
            raise UserError(f"setting {key!r} names a part: write {key}.NAME=value")
        else:
            parts["method"][key] = value
    model, method = parts.pop("model"), parts.pop("method")
    built = config.build(RunConfig, {k: v for k, v in parts.items() if v} | given)
    return dataclasses.replace(built, model=model, method=method)


def train(
    source: Any,
    method: str = "erm",
    *,
    model: str = "",
    out: str | Path,
    weights: str | Path | Table | None = None,
    seed: int = 0,
    device: str = "auto",
    settings: dict[str, Any] | None = None,
    command: str = "",
) -> Run:
    """Train `method` on `source` into the folder `out`; given again, go on where it stopped, or do nothing if it is done."""
    out = Path(out)
    cfg = read_settings(dict(settings or {}), method_name=method, model_name=model, seed=seed)
    method_class(method)  # a wrong name is told before the data is read
    check_place(out)
    if isinstance(source, DataSet) and source.reading is not None and cfg.data == DataConfig():
        cfg = dataclasses.replace(cfg, data=source.reading)  # so that the run can read its data again
        data = source
    else:
        data = load(source, cfg.data)
    data.rows("train")  # says so if there is none
    if not data.has("test"):
        progress.say(f"{data.name} has no test split, and is too small to take one from: judge the run with --on or --split val")
    cfg = dataclasses.replace(cfg, model_name=model or default_model(data.shape))
    check(cfg.select.rule, data)
    weight = _weights(weights, data)
    used = training_data(method, cfg.method, data)
    if used is not data and weight is not None:
        raise UserError(f"method {method!r} adds rows of another source, which --weights does not know; leave one of them out")
    made = make_method(method, cfg.method, cfg.model_name, cfg.model, used, seed, weight)
    notes = check_data(method, cfg.method, data)
    if cfg.train.sampler == "balanced" and bool((data.group[data.rows("train")] < 0).any()):
        never = int((data.group[data.rows("train")] < 0).sum())
        notes += (f"train.sampler=balanced never draws the {never} training rows without a bias value",)
    data = dataclasses.replace(data, notes=(*data.notes, *notes))
    for note in notes:
        progress.say(note)
    warm_start(made, cfg.train.start)
    record = _record(cfg, data, made, weight, command)
    default = config.flat(RunConfig()) | {"method": dataclasses.asdict(method_class(method).Config())}
    done = claim(out, record, default)
    if done is not None:
        progress.say(f"{out} is finished already: nothing to do")
        return done
    fresh = not out.exists()
    try:
        _run(made, used, cfg, weight, out, record, device)
    except (OSError, UserError) as error:
        # Without a saved state there is nothing to go on from: leave nothing behind. The log of a loss that overflowed stays.
        if fresh and not isinstance(error, (NonFinite, Busy)) and not (out / "state.safetensors").is_file():
            shutil.rmtree(out, ignore_errors=True)
        raise
    return Run(out)


def _run(
    made: Method, data: DataSet, cfg: RunConfig, weight: Tensor | None, out: Path, record: dict[str, Any], device: str
) -> None:
    engine = Engine(device, cfg.train.precision, alternating=bool(made.parts))
    if cfg.train.precision == "64-true":
        made = made.double()
    made = made.to(engine.device)
    optimizers = {name: make_optimizer(p, cfg.optim) for name, p in made.parameter_sets().items()}
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    loader = _loader(made, data, cfg, weight, engine)
    per_epoch = loader.sampler.steps_per_epoch
    total = cfg.train.steps or max(1, round(cfg.train.epochs * per_epoch))
    schedule_factor(cfg.optim, 0, total, per_epoch)  # a malformed duration is told before the first step
    state = _State(out, made, optimizers, data, cfg, engine, per_epoch, total, loader)
    with alone(out, "training") if engine.lead else nullcontext():
        if engine.lead:
            write_json(out / "config.json", record)
        engine.barrier()
        state.resume()
        with progress.bar(f"training {cfg.method_name}", total, state.step) as advance, _Log(out, engine.lead) as log:
            state.log, state.advance = log, advance
            fit(
                made, loader, optimizers, engine, cfg.train, seed=cfg.seed, start=state.step, total=total,
                lr=lambda step: schedule_factor(cfg.optim, step, total, per_epoch),
                log=lambda step, terms: log("train", step + 1, terms), after=state.after,
            )  # fmt: skip
        state.finish()
        engine.barrier()


class _State:
    """What goes on beside the steps: looks at the validation split, checkpoints, the choice of weights."""

    def __init__(
        self, out: Path, method: Method, optimizers: dict[str, Any], data: DataSet, cfg: RunConfig,
        engine: Engine, per_epoch: int, total: int, loader: Loader,
    ) -> None:  # fmt: skip
        self.out, self.method, self.optimizers, self.data, self.cfg = out, method, optimizers, data, cfg
        self.engine, self.total, self.loader = engine, total, loader
        self.save_every = max(1, steps_of(cfg.train.checkpoint, per_epoch, total, "train.checkpoint"))
        self.look_every = max(1, steps_of(cfg.select.every, per_epoch, total, "select.every"))
        self.step, self.best_step, self.before = 0, 0, 0.0
        self.best: float | None = None
        self.started = self.saved_at = time.monotonic()
        self.log: Callable[[str, int, dict[str, float]], None] = lambda kind, step, values: None
        self.advance: progress.Advance = lambda steps=1, note="": None

    def resume(self) -> None:
        path = self.out / "state.safetensors"
        if path.is_file():
            tensors, facts = checkpoint.read(path)
            checkpoint.unpack(tensors, facts, self.method, self.optimizers)
            self.step, self.best, self.best_step = facts["step"], facts["best"], facts["best_step"]
            self.before, self.engine.scaler = facts["seconds"], facts["scaler"]
            self.loader.unreadable.update(facts["unreadable"])
            progress.say(f"going on from step {self.step} of {self.total}")

    def after(self, done: int) -> bool:
        """Look and save when it is time; true if looks without a better one have used up the patience."""
        self.advance(1)
        self.step = done
        if done > self.method.prelude and (done % self.look_every == 0 or done == self.total):
            self._look(done)
            patience = self.cfg.select.patience
            if patience and done - max(self.best_step, self.method.prelude) >= patience * self.look_every:
                return True
        # One process also saves by the clock, so that a slow training loses little when it is stopped. Several would have to agree on it.
        late = processes.world() == 1 and time.monotonic() - self.saved_at > SAVE_SECONDS
        if (done % self.save_every == 0 or late) and done < self.total:
            self._save(done)
            self.saved_at = time.monotonic()
        return False

    def _look(self, done: int) -> None:
        split = LOOKS_AT[self.cfg.select.rule][0] or ("val" if self.data.has("val") else "")
        if not split:
            return
        index, logits = predict(self.method, self.data, self.data.rows(split), workers=self.cfg.data.workers)
        value = score(self.cfg.select.rule, logits, self.data, index)
        name = "accuracy" if self.cfg.select.rule == "last" else self.cfg.select.rule
        self.log(split, done, {name: value})
        self.advance(0, f"{split} {name} {value:.3f}")
        if self.cfg.select.rule != "last" and better(value, self.best):
            self.best, self.best_step = value, done
            if self.engine.lead:
                checkpoint.save(self.out / "best.safetensors", self.method.state_dict(), {"step": done})

    def _save(self, done: int) -> None:
        self._count_unreadable()
        if self.engine.lead:
            tensors, facts = checkpoint.pack(self.method, self.optimizers)
            facts |= {
                "step": done, "best": self.best, "best_step": self.best_step,
                "seconds": self.before + time.monotonic() - self.started, "unreadable": sorted(self.loader.unreadable),
                "scaler": self.engine.scaler,
            }  # fmt: skip
            checkpoint.save(self.out / "state.safetensors", tensors, facts)

    def _count_unreadable(self) -> None:
        bad = len(self.loader.unreadable)
        if bad > self.cfg.data.max_bad * len(self.data):
            raise UserError(
                f"{bad} of {len(self.data)} images cannot be decoded, more than data.max_bad={self.cfg.data.max_bad:g} allows; "
                f"one is {self.data.paths[min(self.loader.unreadable)]}"
            )

    def finish(self) -> None:
        self._count_unreadable()
        if not self.engine.lead:
            return
        rule, chosen = self.cfg.select.rule, self.step
        if rule == "last":
            checkpoint.save(self.out / "model.safetensors", self.method.state_dict(), {"step": self.step})
        else:
            tensors, facts = checkpoint.read(self.out / "best.safetensors")
            chosen = facts["step"]
            checkpoint.save(self.out / "model.safetensors", tensors, facts)
        listed = dict(self.data.unreadable) | dict.fromkeys(sorted(self.loader.unreadable), "cannot be decoded")
        outcome = {
            "steps": self.step,
            "seconds": self.before + time.monotonic() - self.started,
            "selection": {"rule": rule, "step": chosen, "score": self.best, "labels": list(LOOKS_AT[rule][1])},
            "unreadable": [{"index": k, "path": self.data.paths[k], "why": why} for k, why in sorted(listed.items())],
        }
        write_json(self.out / "done.json", outcome)
        for name in ("state.safetensors", "best.safetensors"):
            (self.out / name).unlink(missing_ok=True)


class _Log:
    """JSON lines, and TensorBoard if it is installed."""

    def __init__(self, out: Path, lead: bool) -> None:
        self.out, self.lead = out, lead

    def __enter__(self) -> "_Log":
        self.board: Any = None
        if self.lead:
            self.lines = open(self.out / "log.jsonl", "a", encoding="utf-8")
            try:
                from torch.utils.tensorboard import SummaryWriter

                self.board = SummaryWriter(str(self.out / "tensorboard"))  # type: ignore[no-untyped-call]
            except ImportError:
                self.board = None
        return self

    def __exit__(self, *error: object) -> None:
        if self.lead:
            self.lines.close()
        if self.board is not None:
            self.board.close()

    def __call__(self, kind: str, step: int, values: dict[str, float]) -> None:
        if not self.lead:
            return
        self.lines.write(dumps({"step": step, "kind": kind, **values}, indent=None) + "\n")
        self.lines.flush()
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(f"{kind}/{name}", value, step)


def _loader(made: Method, data: DataSet, cfg: RunConfig, weight: Tensor | None, engine: Engine) -> Loader:
    rows = data.rows("train")
    if data.unreadable:
        rows = rows[~torch.isin(rows, torch.tensor([k for k, _ in data.unreadable]))]
    chance: Tensor | None = None
    if weight is not None:
        rows = rows[weight[rows] > 0]
        if not len(rows):
            raise UserError("the weights leave no training row")
        weight = weight.clone()
        weight[rows] = unit_mean(weight[rows])
        if cfg.train.weights == "sampler":
            chance, weight = weight[rows], None
    if cfg.train.sampler == "balanced":
        if chance is not None:
            raise UserError("train.sampler=balanced and train.weights=sampler both say how rows are drawn; choose one")
        if not data.bias_names:
            raise UserError("train.sampler=balanced needs a bias column; name one with --bias")
        chance = group_weights(data.group[rows])
    sampler = Sampler(rows, min(cfg.train.batch, len(rows)), cfg.seed, chance)
    return Loader(
        data, sampler, made.sees, weight, engine.device,
        torch.float64 if cfg.train.precision == "64-true" else torch.float32,
        preset(cfg.data.augment), cfg.seed, cfg.data.workers,
    )  # fmt: skip


def _weights(given: str | Path | Table | None, data: DataSet) -> Tensor | None:
    """(N,) weight by sample id, 0 where the table has no row."""
    if given is None:
        return None
    table = given if isinstance(given, Table) else Table.read(Path(given))
    made_for = table.made_by.get("fingerprint")
    if made_for and made_for != data.fingerprint:
        raise UserError(
            f"the weights were made for another source: their fingerprint is {made_for[:12]}…, this one's {data.fingerprint[:12]}…"
        )
    index, column = table.index, table.column("weight").double()
    if len(index) and (int(index.min()) < 0 or int(index.max()) >= len(data)):
        raise UserError(f"the weights name sample {int(index.max())}, but {data.name} has {len(data)} rows")
    if not bool(torch.isfinite(column).all()) or bool((column < 0).any()):
        raise UserError("weights must be finite and not negative")
    weight = torch.zeros(len(data), dtype=torch.float64)
    weight[index] = column
    return weight


def _record(cfg: RunConfig, data: DataSet, made: Method, weight: Tensor | None, command: str) -> dict[str, Any]:
    sees = sorted({"y"} | set(made.sees) | ({"bias"} if cfg.train.sampler == "balanced" else set()))
    resolved = config.flat(cfg) | {
        "method": dataclasses.asdict(made.cfg),
        "model": dataclasses.asdict(config.build(registry.load("models", cfg.model_name).Config, cfg.model)),
    }
    digest = None if weight is None else float((weight * torch.arange(1, len(weight) + 1)).sum())
    return {
        "config": resolved,
        "fingerprint": data.fingerprint,
        "data": data.describe(),
        "alignment": alignment(data),
        "labels": {"training": sees, "selection": list(LOOKS_AT[cfg.select.rule][1])},
        "weights": digest,
        "facts": dataclasses.asdict(made.facts),
        "parameters": sum(p.numel() for p in made.parameters()),
        "processes": processes.planned_world(),
        "command": command,
        "versions": versions(),
    }


def alignment(data: DataSet) -> dict[str, Any]:
    """Which (class, bias value) pairs are aligned in these training rows, by name: what other data is judged by."""
    tables, rule = data.aligned()
    pairs = {}
    for name, values, table in zip(data.bias_names, data.bias_values, tables or (), strict=False):
        pairs[name] = [[data.classes[y], values[b]] for y, b in table.nonzero().tolist()]
    return {"rule": rule, "pairs": pairs}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("unskew", "torch", "lightning-fabric", "numpy", "polars"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
