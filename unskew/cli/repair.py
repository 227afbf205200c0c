"""`unskew repair`: weights, subsets and cleaned labels."""

from pathlib import Path
from typing import Annotated, Optional

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
    Source,
    Split,
    Trust,
    columns,
    command,
)  # fmt: skip


@app.command(
    epilog=examples(
        "unskew repair photos/ --with independence --out weights.parquet", "unskew repair photos/ --as folder --out kept"
    )
)
def repair(
    source: Source,
    settings: Settings = None,
    method: Annotated[str, typer.Option("--with", help="See: unskew list repairs.")] = "repair",
    out: Annotated[Path, typer.Option(help="The table (.parquet, .csv), or the folder.")] = Path("weights.parquet"),
    how: Annotated[str, typer.Option("--as", help="parquet, csv, or folder (kept images in class folders).")] = "parquet",
    copy: Annotated[bool, typer.Option("--copy", help="With --as folder: copy files instead of linking.")] = False,
    measure: Annotated[
        Optional[list[str]], typer.Option(help="Representation to measure before and after; may be given several times.")
    ] = None,
    splits: Annotated[
        str, typer.Option(help="Splits to weight, separated by commas; the repair's own choice if not given.")
    ] = "",
    model: Annotated[str, typer.Option(help="Network of a repair that trains one.")] = "",
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    force: Annotated[bool, typer.Option("--force", help="Use a repair's weights even if the guards refuse them.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    executor: Executor = "local",
    address: Address = "",
    gpus: Gpus = 0.0,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Make weights, subsets or cleaned labels that any training code can use. Run the same command again to resume."""
    from unskew.core import config
    from unskew.core.executor import running
    from unskew.pages.text import repair_table
    from unskew.verbs.repair import repair as verb

    values = config.words(settings or []) | columns(label, bias, split, group)
    with running(executor, address, gpus=gpus):
        result = verb(
            source, method, out=out, how=how, copy=copy, measure=measure or [], splits=[s for s in splits.split(",") if s],
            model=model, seed=seed, device=device, force=force, settings=values, command=command(),
        )  # fmt: skip
    show({"out": str(result.path), **result.json()}, json, repair_table(result))
