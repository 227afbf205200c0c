"""`unskew dependency`: REPAIR's beta."""

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Bias, Device, Group, Json, Label, Seed, Settings, Source, Split, Trust, columns, command


@app.command(epilog=examples("unskew dependency photos/ --phi color --out beta"))
def dependency(
    source: Source,
    settings: Settings = None,
    phi: Annotated[str, typer.Option(help="Representation to read the shortcut from; see: unskew list representations.")] = "",
    model: Annotated[str, typer.Option(help="See: unskew list models. Chosen to fit the inputs if not given.")] = "",
    method: Annotated[str, typer.Option(help="See: unskew list methods.")] = "erm",
    rates: Annotated[str, typer.Option(help="Shares of the rows to keep, separated by commas.")] = "0.25,0.5,0.75",
    on_split: Annotated[
        str, typer.Option(help="Split to measure accuracy on; by default test if it is drawn like the training rows, else val.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder for weights and runs.")] = Path("dependency"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    seed: Seed = 0,
    device: Device = "auto",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """REPAIR's beta: the accuracy lost without the rows that feed a shortcut, compared with leaving out as many at random."""
    from unskew.core import config
    from unskew.pages.text import dependency_table
    from unskew.verbs.dependency import dependency as verb

    result = verb(
        source, phi=phi, out=out, model=model, method=method, rates=config.numbers(rates, "rates"), split=on_split,
        seed=seed, device=device, settings=config.words(settings or []) | columns(label, bias, split, group), command=command(),
    )  # fmt: skip
    show(result.json(), json, dependency_table(result))
