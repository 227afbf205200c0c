"""Methods of several stages: train, score, repair, train again. One file, one stage method, a short function of the public verbs.

A file of this folder has a frozen dataclass `Config` and `train(stage, cfg)`, which gives the final run. Every stage leaves its result
beside OUT and goes on from there when the command is given again. `denoise+METHOD` cleans the labels before any method, of one stage or
several, and `balance+METHOD` draws the rows down until every label has the bias values as often; settings of these begin with
`denoise.` or `balance.`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew import config, registry
from unskew.data._dataset import DataSet
from unskew.data._sources import load
from unskew.errors import UserError, suggest
from unskew.methods._make import method_class
from unskew.records import Run, Table
from unskew.repair._run import repair as repair_rows
from unskew.train.fit import TrainConfig
from unskew.train.run import read_settings
from unskew.train.run import train as train_once

PARTS = ("data", "optim", "train", "select", "model")  # of a run's settings; the others are the method's
BEFORE = {"denoise": "clean", "balance": "balanced"}  # repairs that can stand before a method, and what their table is called


@dataclass(frozen=True)
class Stage:
    """What a stage method works with: the request, and `run`, which trains one part of it under a name."""

    source: Any
    out: Path
    data: Callable[[], DataSet]  # the source, read
    seed: int
    given: dict[str, Any]  # settings of its runs, as the user gave them
    plan: TrainConfig  # the same of train.*, with the defaults
    run: Callable[..., Run]  # run(place, "erm", weights=..., train__epochs=1) trains into the folder `place`
    repair: Callable[..., Table]  # repair(place, "gradients", {"k": 100}) makes the table `place`

    def beside(self, name: str) -> Path:
        """A place for an intermediate result: OUT-name."""
        return self.out.with_name(f"{self.out.name}-{name}")


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
    """Train a method, of one stage or several, into the folder `out`; given again, go on where it stopped."""
    if not source and isinstance(source, str):
        raise UserError("no source: name one, or give a --recipe that does")
    first, plus, rest = method.partition("+")
    if plus:
        return _after_repair(
            source,
            first,
            rest,
            model=model,
            out=out,
            weights=weights,
            seed=seed,
            device=device,
            settings=settings,
            command=command,
        )
    if method not in registry.names("stages"):
        if "." not in method and method.replace("-", "_") not in registry.names("methods"):
            known = [*registry.names("methods"), *registry.names("stages")]
            raise UserError(f"no method {method!r}{suggest(method, known)}")
        return train_once(
            source, method, model=model, out=out, weights=weights, seed=seed, device=device, settings=settings, command=command
        )
    module = registry.load("stages", method)
    if weights is not None:
        raise UserError(f"method {method!r} makes its own weights; leave out --weights")
    out = Path(out).absolute()
    given = dict(settings or {})
    shared = {k: v for k, v in given.items() if k.partition(".")[0] in PARTS}
    own = {k.removeprefix("method."): v for k, v in given.items() if k not in shared}
    cfg = config.build(module.Config, own, "method.")

    def data() -> DataSet:
        return load(source, **{k.removeprefix("data."): v for k, v in shared.items() if k.startswith("data.")})

    def run(place: Path, which: str, weights: Table | None = None, **more: Any) -> Run:
        merged = shared | {k.replace("__", "."): v for k, v in more.items()}
        return train_once(
            source, which, model=model, out=place, weights=weights, seed=seed, device=device, settings=merged, command=command
        )

    def repair(place: Path, which: str, given: dict[str, Any]) -> Table:
        reading = {k: v for k, v in shared.items() if k.startswith("data.")}
        # A table of weights judges rows as they are: changed inputs are for training.
        reading = {k: v for k, v in reading.items() if k != "data.augment"}
        return repair_rows(source, which, out=place, model=model, seed=seed, device=device, settings=reading | given).table

    made: Run = module.train(Stage(source, out, data, seed, shared, read_settings(shared).train, run, repair), cfg)
    return made


def check_training(name: str, model: str, settings: dict[str, Any], one_stage: bool = False) -> None:
    """A wrong name or setting of a method, of one stage or several, or of a network, is told now."""
    first, plus, rest = name.partition("+")
    if plus and not one_stage:
        _check_before(first, rest)
        own = {k.removeprefix(f"{first}."): v for k, v in settings.items() if k.startswith(f"{first}.")}
        own = {k: v for k, v in own.items() if k.partition(".")[0] not in PARTS}
        config.build(registry.load("repairs", first).Config, own, f"{first}.")
        name, settings = rest, {k: v for k, v in settings.items() if not k.startswith(f"{first}.")}
    known = read_settings(settings)
    kind = "stages" if name in registry.names("stages") and not one_stage else "methods"
    if kind == "methods" and "." not in name and name.replace("-", "_") not in registry.names("methods"):
        others = [] if one_stage else registry.names("stages")
        raise UserError(f"no method {name!r}{suggest(name, [*registry.names('methods'), *others])}")
    config.build(registry.load("stages", name).Config if kind == "stages" else method_class(name).Config, known.method, "method.")
    if model:
        config.build(registry.load("models", model).Config, known.model, "model.")


def _check_before(first: str, rest: str) -> None:
    if first not in BEFORE or not rest or "+" in rest:
        raise UserError(
            f"method {first}+{rest}: what can stand before a method is one of {' or '.join(BEFORE)}, as in denoise+lff"
        )


def _after_repair(
    source: Any, first: str, rest: str, *, out: str | Path, weights: Any, settings: dict[str, Any] | None, **more: Any
) -> Run:
    """denoise+METHOD, balance+METHOD: rows are left out first, and METHOD, of one stage or several, never sees them."""
    _check_before(first, rest)
    check_training(rest, more["model"], {k: v for k, v in (settings or {}).items() if not k.startswith(f"{first}.")})
    if weights is not None:
        raise UserError(f"{first}+ makes its own table; leave out --weights")
    given = dict(settings or {})
    own = {k.removeprefix(f"{first}."): v for k, v in given.items() if k.startswith(f"{first}.")}
    given = {k: v for k, v in given.items() if not k.startswith(f"{first}.")}
    if given.get("data.keep"):
        raise UserError(f"{first}+ sets data.keep itself; leave it out")
    reading = {k: v for k, v in given.items() if k.startswith("data.") and k != "data.augment"}
    out = Path(out).absolute()
    table = out.with_name(f"{out.name}-{BEFORE[first]}.parquet")
    repair_rows(source, first, out=table, settings=reading | own, **{k: more[k] for k in ("model", "seed", "device")})
    return train(source, rest, out=out, settings={**given, "data.keep": str(table)}, **more)
