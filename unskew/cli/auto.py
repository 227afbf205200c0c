"""`unskew auto`: audit, try what may help, choose without bias labels, prove it."""

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Address, Bias, Device, Group, Json, Label, Seed, Settings, Source, Split, Trust, columns, command


@app.command(epilog=examples("unskew auto photos/ --budget 30min --out auto", "unskew auto meta.csv --label species --out auto"))
def auto(
    source: Source,
    settings: Settings = None,
    budget: Annotated[
        str, typer.Option(help="Time to spend, such as 90s, 30min or 2h; the last training always fits in.")
    ] = "30min",
    rule: Annotated[
        str,
        typer.Option(
            help="What candidates are ranked by: val-pseudo-groups, val-worst-slice, or val-worst-group, by bias labels."
        ),
    ] = "val-pseudo-groups",
    expect: Annotated[
        str, typer.Option(help="What shows the class by right, separated by commas, such as texture,centre; remembered.")
    ] = "",
    model: Annotated[str, typer.Option(help="See: unskew list models. Chosen to fit the inputs if not given.")] = "",
    executor: Annotated[str, typer.Option("--executor", help="Where candidates are trained: local, or ray.")] = "local",
    address: Address = "",
    workers: Annotated[int, typer.Option(help="Number of trainings side by side; one per core if not given.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for audit, candidates, models and page.")] = Path("auto"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    seed: Seed = 0,
    device: Device = "auto",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Find a shortcut, try what may help within a budget, choose without bias labels, and prove it. Run it again to resume.

    A bias column is only used to say what missing labels cost, unless --rule val-worst-group asks for it.
    """
    from unskew.core import config
    from unskew.pages.auto import auto_text
    from unskew.verbs.auto import auto as verb

    result = verb(
        source, out=out, budget=budget, rule=rule, expect=[w for w in expect.split(",") if w.strip()], model=model, executor=executor,
        address=address, workers=workers, seed=seed, device=device,
        settings=config.words(settings or []) | columns(label, bias, split, group), command=command(),
    )  # fmt: skip
    show({"page": str(result.page), **result.json()}, json, f"{auto_text(result)}\n\npage: {result.page.resolve()}")
