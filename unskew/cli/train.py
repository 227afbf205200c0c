"""`unskew train`: a method into a run folder."""

import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, show
from unskew.cli.options import Bias, Device, Group, Json, Label, Seed, Settings, Split, Trust, columns, command


@app.command()
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
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Train a method into a run folder. Run the same command again to resume. Settings given here override those of a recipe."""
    from unskew.core import config
    from unskew.verbs.recipe import read_recipe
    from unskew.verbs.train import train as verb

    if "=" in source and recipe and ":" not in source:
        settings, source = [source, *(settings or [])], ""  # the recipe has the source, so the first word is a setting
    words = config.words(settings or []) | columns(label, bias, split, group)
    asked = read_recipe(recipe, out, seed, device, words, command()) if recipe else None
    run = verb(
        source or (asked.source if asked else ""), method or (asked.method if asked else "erm"),
        model=model or (asked.model if asked else ""), out=out, weights=weights, seed=seed, device=device, force=force,
        settings=asked.settings if asked else words, command=command(),
    )  # fmt: skip
    chosen = "".join(f"{note}\n" for note in run.config["data"]["notes"] if note.startswith("network: "))
    text = f"{chosen}{run.path}: done. Next: unskew evaluate {shlex.quote(str(run.path))}"
    show({"run": str(run.path), **run.outcome}, json, text)
