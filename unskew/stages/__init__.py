"""Methods of several stages: train, score, repair, train again. One file, one stage method, a short function of the public verbs.

A file of this folder has a frozen dataclass `Config` and `train(stage, cfg)`, which gives the final run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew import config, registry
from unskew.data._dataset import DataSet
from unskew.data._sources import load
from unskew.errors import UserError, suggest
from unskew.records import Run, Table
from unskew.train.run import train as train_once


@dataclass(frozen=True)
class Stage:
    """What a stage method works with: the request, and `run`, which trains one part of it under a name."""

    source: Any
    out: Path
    data: Callable[[], DataSet]  # the source, read
    run: Callable[..., Run]  # run(place, "erm", weights=..., train__epochs=1) trains into the folder `place`


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
    parts = ("data", "optim", "train", "select", "model")
    given = dict(settings or {})
    shared = {k: v for k, v in given.items() if k.partition(".")[0] in parts}
    own = {k.removeprefix("method."): v for k, v in given.items() if k not in shared}
    cfg = config.build(module.Config, own, "method.")

    def data() -> DataSet:
        return load(source, **{k.removeprefix("data."): v for k, v in shared.items() if k.startswith("data.")})

    def run(place: Path, which: str, weights: Table | None = None, **more: Any) -> Run:
        merged = shared | {k.replace("__", "."): v for k, v in more.items()}
        return train_once(
            source, which, model=model, out=place, weights=weights, seed=seed, device=device, settings=merged, command=command
        )

    made: Run = module.train(Stage(source, out, data, run), cfg)
    return made
