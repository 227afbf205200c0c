"""One training: from a source and a method's name to a run folder, resumable at any moment."""

import dataclasses
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from unskew.core import config, progress
from unskew.core.engine import Engine
from unskew.core.errors import UserError
from unskew.core.files import plain, write_json
from unskew.core.settings import Settings
from unskew.core.workplace import Busy, alone, check_place, claim
from unskew.data.augment import preset
from unskew.data.dataset import DataSet
from unskew.data.loader import Loader, rows_in_order
from unskew.data.reading import DataConfig
from unskew.data.samplers import Sampler, group_weights, unit_mean
from unskew.data.sources import load
from unskew.methods._contract import Method, Problem, method_class
from unskew.models._contract import Model
from unskew.records import Run, Table
from unskew.training.defaults import check_tune, choose
from unskew.training.fit import NonFinite, fit
from unskew.training.frozen import is_frozen, standardise, with_features
from unskew.training.make import check_data, freeze, make_method, training_data, warm_start
from unskew.training.optim import make_optimizer, schedule_factor
from unskew.training.record import IDENTITY, identity_there, record
from unskew.training.selection import GUESSED, check
from unskew.training.settings import RunConfig, run_config
from unskew.training.state import Log, State
from unskew.training.trained import ROWS as TRAINED_ROWS
from unskew.training.weights import Weights, read_weights


def train_once(
    source: Any,
    method: str = "erm",
    *,
    model: str = "",
    out: str | Path,
    weights: str | Path | Table | None = None,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> Run:
    """Train a method of one stage on `source` into the folder `out`. Called again, it resumes, or returns the finished run."""
    out, asked = Path(out), Settings.of(settings)
    cfg = run_config(asked, method_name=method, model_name=model, seed=seed)
    method_class(method)  # reject an unknown name before reading data
    check_place(out, "a run", ("config.json",))
    if isinstance(source, DataSet) and source.reading is not None and cfg.data == DataConfig():
        cfg = dataclasses.replace(cfg, data=source.reading)  # so that the run can read its data again
        data = source
    else:
        data = load(source, cfg.data)
    data.rows("train")  # raises if the split is empty
    if not data.has("test"):
        progress.say(f"{data.name} has no test split and is too small to split one off; judge the run with --on or --split val")
    given = read_weights(weights, data, cfg.train.weights)
    cfg, chosen = _settled(cfg, asked, data, given is not None)
    check(cfg.select.rule, data)
    used = training_data(method, cfg.method, data)
    if used is not data and given is not None:
        raise UserError(f"method {method!r} adds rows of another source, which --weights does not cover; use one or the other")
    instance = make_method(method, cfg.method, cfg.model_name, cfg.model, used, seed, None if given is None else given.value)
    remarks = (*check_data(method, cfg.method, data), *_never_drawn(data, cfg))
    for remark in remarks:
        progress.say(remark)
    data = dataclasses.replace(data, notes=(*data.notes, *chosen, *remarks))
    warm_start(instance, cfg.train.start)
    freeze(instance, cfg.train.freeze)
    written = plain(record(cfg, data, instance, given, command))
    there = Run(out).config if (out / "config.json").is_file() else None
    ours = {key: written[key] for key in IDENTITY}
    if claim(out, "run", there and identity_there(there, data, given, method), ours) and Run(out).finished:
        progress.say(f"{out} is already finished; nothing to do")
        return Run(out)
    fresh = not out.exists()
    try:
        _run(instance, used, cfg, given, out, written, device)
    except Exception as error:
        # Without a saved state there is nothing to resume: remove the folder, but keep the log of a run whose loss overflowed.
        if fresh and not isinstance(error, (NonFinite, Busy)) and not (out / "state.safetensors").is_file():
            shutil.rmtree(out, ignore_errors=True)
        raise
    return Run(out)


def _settled(cfg: RunConfig, asked: Settings, data: DataSet, weighted: bool) -> tuple[RunConfig, tuple[str, ...]]:
    """The settings with what the data decides: the method's own `auto`, and a network with its training if none is named."""
    cls = method_class(cfg.method_name)
    built: Any = config.build(cls.Config, cfg.method, "method.")
    own = cls.settled(built, data)
    if own is not built:
        cfg = dataclasses.replace(cfg, method=dataclasses.asdict(own))
    check_tune(cfg.train.tune, cfg.model_name)
    if cfg.model_name:
        if cfg.train.tune == "head" and cfg.model_name != "frozen":
            inner = {f"net.{key}": value for key, value in cfg.model.items()}
            cfg = dataclasses.replace(cfg, model_name="frozen", model={"backbone": cfg.model_name, **inner})
        return cfg, ()
    chosen = choose(data, cls, own, cfg.train.tune, int(asked["train"].get("batch", 0)), weighted)
    merged = Settings.of({**_compatible(chosen.settings, asked.dotted()), **asked.dotted()})
    settled = run_config(merged, method_name=cfg.method_name, model_name=chosen.model, seed=cfg.seed)
    if chosen.model == "frozen" and settled.data.augment != "none":
        raise UserError(
            f"data.augment={settled.data.augment} needs the pixels at every step, but only the last layer learns here; "
            "set train.tune=all, or leave out data.augment"
        )
    settled = dataclasses.replace(settled, data=dataclasses.replace(cfg.data, augment=settled.data.augment), method=cfg.method)
    return settled, (f"network: {chosen.model}, chosen for {chosen.why}; {_in_words(settled)}",)


def _compatible(chosen: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The chosen settings without those that something the user gave replaces as a whole."""
    replaced = {part: f"{part}." for part in ("optim", "select") if f"{part}.{'name' if part == 'optim' else 'rule'}" in asked}
    left = {k: v for k, v in chosen.items() if not any(k.startswith(prefix) for prefix in replaced.values())}
    if "train.epochs" in asked:
        left.pop("train.steps", None)
    return left


def _in_words(cfg: RunConfig) -> str:
    """How long and by what a network is trained, for the note on the page."""
    length = f"{cfg.train.steps} steps" if cfg.train.steps else f"{cfg.train.epochs:g} epochs"
    parts = [f"{length} of {cfg.train.batch} rows", f"{cfg.optim.name} at {cfg.optim.lr:g}"]
    parts.append(f"weight decay {cfg.optim.weight_decay:g}")
    parts += [f"augmentation {cfg.data.augment}"] if cfg.data.augment != "none" else []
    return ", ".join([*parts, f"weights selected by {cfg.select.rule}"])


def _never_drawn(data: DataSet, cfg: RunConfig) -> tuple[str, ...]:
    never = int((data.group[data.rows("train")] < 0).sum())
    if cfg.train.sampler != "balanced" or not never:
        return ()
    return (f"train.sampler=balanced never draws the {never} training rows without a bias value",)


def _run(
    method: Method, data: DataSet, cfg: RunConfig, weights: Weights | None, out: Path, written: dict[str, Any], device: str
) -> None:
    engine = Engine(device, cfg.train.precision, alternating=bool(method.parts))
    if cfg.train.precision == "64-true":
        method = method.double()
    method = method.to(engine.device)
    source = data
    if is_frozen(method.model):
        names = [s for s in ("train", "val") if data.has(s)]
        data = with_features(data, method.model, torch.cat([data.rows(s) for s in names]), cfg.data.workers)
    for network in method.modules():
        standardise(network, data)
    optimizers = {name: make_optimizer(learning(p, name, cfg), cfg.optim) for name, p in method.parameter_sets().items()}
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    loader = _loader(method, data, cfg, weights, engine)
    per_epoch = _steps_of_all_rows(data, cfg.train.batch)
    total = cfg.train.steps or max(1, round(cfg.train.epochs * per_epoch))
    schedule_factor(cfg.optim, 0, total, per_epoch)  # reject a malformed duration before the first step
    state = State(out, method, optimizers, data, cfg, engine, per_epoch, total, loader)
    if cfg.select.rule in GUESSED:
        from unskew.training.pseudo import groups_for  # other trainings do without measures and representations

        state.guessed = groups_for(cfg.select.rule, source, cfg.seed, cfg.data.workers)
    with alone(out, "training") if engine.lead else nullcontext():
        if engine.lead and not (out / "done.json").is_file():  # another process may have finished it while this one waited
            write_json(out / "config.json", written)
            if weights is not None:
                Table(pl.DataFrame({"index": loader.sampler.rows.numpy()}), {"name": "train"}).save(out / TRAINED_ROWS)
        engine.barrier()
        if (out / "done.json").is_file():
            progress.say(f"{out} is already finished; nothing to do")
            return
        if method.solved:
            problem = _problem(method, source, data, loader, cfg)
            with Log(out, engine.lead, cfg) as log:
                log("train", 0, method.solve(problem))
            state.finish()
            engine.barrier()
            return
        state.resume()
        with progress.bar(f"training {cfg.method_name}", total, state.step) as advance, Log(out, engine.lead, cfg) as log:
            state.log, state.advance = log, advance
            fit(
                method, loader, optimizers, engine, cfg.train, seed=cfg.seed, start=state.step, total=total,
                lr=lambda step: schedule_factor(cfg.optim, step, total, per_epoch),
                log=lambda step, terms: log("train", step + 1, terms), after=state.after,
            )  # fmt: skip
        state.finish()
        engine.barrier()


def learning(parameters: list[nn.Parameter], name: str, cfg: RunConfig) -> list[nn.Parameter]:
    """Those of the parameters that train.freeze leaves; the optimiser of the others would have nothing to do."""
    left = [p for p in parameters if p.requires_grad] if cfg.train.freeze else parameters
    if not left:
        raise UserError(f"train.freeze={','.join(cfg.train.freeze)} leaves nothing to learn in {name}; freeze less")
    return left


def _problem(method: Method, source: DataSet, data: DataSet, loader: Loader, cfg: RunConfig) -> Problem:
    """The training rows of a method that is solved, with the features that its last layer reads."""
    rows = loader.sampler.rows.sort().values
    index, parts = [], []
    assert isinstance(method.model, Model)
    with torch.inference_mode():
        for ids, x in rows_in_order(data, rows, 1024):
            index.append(ids)
            parts.append(method.model.features(x.to(next(method.parameters()).device)).flatten(1).cpu())
    ids = torch.cat(index)
    weight = loader.sampler.by_id(len(data)) if loader.weight is None else loader.weight
    return Problem(
        source, ids, torch.cat(parts).clone(), None if weight is None else weight[ids].double(), cfg.seed, cfg.data.workers
    )


def _steps_of_all_rows(data: DataSet, batch: int) -> int:
    """Steps of an epoch of the full training set: a subset is trained on for as many steps, not for as many passes."""
    dropped = data.rows("dropped") if data.has("dropped") else torch.zeros(0, dtype=torch.long)
    rows = torch.cat([data.rows("train"), dropped])
    return Sampler(rows, min(batch, len(rows)), 0).steps_per_epoch


def _loader(method: Method, data: DataSet, cfg: RunConfig, weights: Weights | None, engine: Engine) -> Loader:
    rows = data.rows("train")
    if data.unreadable:
        rows = rows[~torch.isin(rows, torch.tensor([k for k, _ in data.unreadable]))]
    chance: Tensor | None = None
    on_loss: Tensor | None = None
    if weights is not None:
        rows = rows[weights.value[rows] > 0]
        if not len(rows):
            raise UserError("no training row has a weight above 0")
        value = weights.value.clone()
        value[rows] = unit_mean(value[rows])
        if weights.use == "chance":
            chance = value[rows]
        else:
            on_loss = value
    if cfg.train.sampler == "balanced":
        if chance is not None:
            raise UserError("train.sampler=balanced and weights used as chances both decide how rows are drawn; choose one")
        if not data.bias_names:
            raise UserError("train.sampler=balanced needs a bias column; name one with --bias")
        chance = group_weights(data.group[rows])
    sampler = Sampler(rows, min(cfg.train.batch, len(rows)), cfg.seed, chance, data.blocks)
    return Loader(
        data, sampler, method.sees, on_loss, engine.device,
        torch.float64 if cfg.train.precision == "64-true" else torch.float32,
        preset(cfg.data.augment), cfg.seed, cfg.data.workers,
    )  # fmt: skip
