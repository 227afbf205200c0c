"""`unskew audit`: what gives the label away."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import (
    Address,
    Bias,
    Executor,
    FitOn,
    Gpus,
    Group,
    Json,
    Label,
    Protocol,
    Seed,
    Settings,
    Source,
    Split,
    Trust,
    attack_by,
    columns,
    command,
)  # fmt: skip


@app.command(
    epilog=examples(
        "unskew audit photos/ --out audit",
        "unskew audit meta.csv --label species --bias place --out audit",
        "unskew audit photos/ --expect texture --out audit",
    )
)
def audit(
    source: Source,
    settings: Settings = None,
    representation: Annotated[
        Optional[list[str]], typer.Option(help="Measure only this representation; may be given several times.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for page, JSON and scores.")] = Path("audit"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    trial: Annotated[bool, typer.Option("--trial/--no-trial", help="Try a remedy on features before advising one.")] = True,
    expect: Annotated[
        str, typer.Option(help="What shows the class by right, separated by commas, such as texture,centre; remembered.")
    ] = "",
    slices: Annotated[
        int, typer.Option(help="Look for slices of each class, without bias labels, in a sample of this many rows; 0: do not.")
    ] = 2000,
    protocol: Protocol = "paper",
    fit_on: FitOn = "judged",
    seed: Seed = 0,
    executor: Executor = "local",
    address: Address = "",
    gpus: Gpus = 0.0,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Measure what gives the label away: colour, background, texture, file properties, columns. Needs no bias labels."""
    from unskew.core import config
    from unskew.core.executor import running
    from unskew.pages.text import audit_table
    from unskew.verbs.audit import audit as verb

    values = config.words(settings or []) | columns(label, None, split, group)
    named = [name for text in bias or [] for name in text.split(",")]
    with running(executor, address, gpus=gpus):
        result = verb(
            source, bias=named, representations=representation or [], out=out, seed=seed, settings=values,
            trial=trial, expect=[w for w in expect.split(",") if w.strip()], slices=slices, attack=attack_by(protocol), fit_on=fit_on,
            command=command(),
        )  # fmt: skip
    show({"page": str(result.page), **result.json()}, json, f"{audit_table(result)}\n\npage: {result.page.resolve()}")
