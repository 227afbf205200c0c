"""`unskew train`: a method into a run folder."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import (
    Address,
    Bias,
    Device,
    Executor,
    Gpus,
    Group,
    Json,
    Label,
    Seed,
    Settings,
    Split,
    Trust,
    columns,
    command,
)  # fmt: skip

if TYPE_CHECKING:
    from unskew.records import Run


@app.command(
    epilog=examples(
        "unskew train photos/ --method advised --out run",
        "unskew train meta.csv --label species --bias place --method group_dro --out run",
        "unskew train --recipe pgd-table1/colored-mnist/0.99/lff@small --out run",
    )
)
def train(
    source: Annotated[str, typer.Argument(help="As for audit; may come from the recipe instead.")] = "",
    settings: Settings = None,
    method: Annotated[str, typer.Option(help="See: unskew list methods. erm if neither this nor the recipe names one.")] = "",
    model: Annotated[str, typer.Option(help="See: unskew list models. Chosen to fit the inputs if not given.")] = "",
    weights: Annotated[Optional[Path], typer.Option(help="Table with a column weight, from unskew repair.")] = None,
    recipe: Annotated[
        str,
        typer.Option(
            metavar="SUITE/DATA/AT/METHOD@SCALE",
            help=r"A row of a suite, or your own TOML file (\[run] source, method, model; settings).",
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("run"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    force: Annotated[bool, typer.Option("--force", help="Use a repair's weights even if the guards refuse them.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    executor: Executor = "local",
    address: Address = "",
    workers: Annotated[int, typer.Option(help="With --executor ray: processes that train together.")] = 1,
    gpus: Gpus = 0.0,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Train a method into a run folder. Run the same command again to resume. Settings given here override those of a recipe."""
    from unskew.core import config
    from unskew.core.errors import UserError
    from unskew.verbs.recipe import read_recipe
    from unskew.verbs.train import train as here

    if "=" in source and recipe and ":" not in source:
        settings, source = [source, *(settings or [])], ""  # the recipe has the source, so the first word is a setting
    words = config.words(settings or []) | columns(label, bias, split, group)
    asked = read_recipe(recipe, out, seed, device, words, command()) if recipe else None
    verb: Callable[..., Run] = here
    if executor == "ray":
        from unskew.verbs.train_ray import train_on_ray

        verb = partial(train_on_ray, workers=workers, address=address, gpus=gpus)
    elif address or gpus or workers != 1:
        raise UserError(
            "--address, --workers and --gpus are for --executor ray; on one machine, torchrun starts several processes"
        )
    run = verb(
        source or (asked.source if asked else ""), method or (asked.method if asked else "erm"),
        model=model or (asked.model if asked else ""), out=out, weights=weights, seed=seed, device=device, force=force,
        settings=asked.settings if asked else words, command=command(),
    )  # fmt: skip
    chosen = "".join(f"{note}\n" for note in run.config["data"]["notes"] if note.startswith("network: "))
    text = f"{chosen}{run.path}: done. Next: unskew evaluate {shlex.quote(str(run.path))}"
    show({"run": str(run.path), **run.outcome}, json, text)
