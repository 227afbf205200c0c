"""`unskew evaluate`: judge a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Address, Bias, Device, Executor, FitOn, Gpus, Json, Label, Protocol, Trust, attack_by


@app.command(
    epilog=examples(
        "unskew evaluate run", "unskew evaluate run --leakage --reliance", "unskew evaluate predictions.parquet --source photos/"
    )
)
def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder, or a table of predictions made elsewhere (with --source).")],
    source: Annotated[
        str, typer.Option(help="The data that a table of predictions is about; matched by index, id or path.")
    ] = "",
    label: Label = "",
    bias: Bias = None,
    on: Annotated[str, typer.Option(help="Another source with the same classes, or see --shared-classes.")] = "",
    split: Annotated[str, typer.Option(help="Split to judge on.")] = "test",
    leakage: Annotated[bool, typer.Option("--leakage", help="Also attack: can the bias be guessed from the logits?")] = False,
    noise: Annotated[
        str, typer.Option(help="With --leakage: also attack with noise of these levels on the embedding, e.g. 0.5,1,2.")
    ] = "",
    alpha: Annotated[float, typer.Option(help="With --leakage: attack an alpha-balanced subset of the rows.")] = 0.0,
    rba: Annotated[
        float, typer.Option(help="With --leakage: also attack after calibration to the training ratios with this margin.")
    ] = 0.0,
    protocol: Protocol = "paper",
    fit_on: FitOn = "judged",
    corruptions: Annotated[str, typer.Option(help="Also judge on corrupted images: all, or names such as fog,shot_noise.")] = "",
    textures: Annotated[
        str,
        typer.Option(
            metavar="REPRESENTATION", help="Also judge over clusters of this: texture, or layer:model=vgg16,... (see explain)."
        ),
    ] = "",
    temporal: Annotated[
        bool, typer.Option("--temporal", help="Also measure how much features change when clips are played backwards.")
    ] = False,
    erase: Annotated[
        str, typer.Option(metavar="leace|splince", help="Also judge with the bias erased from what the last layer reads.")
    ] = "",
    reliance: Annotated[
        bool,
        typer.Option("--reliance", help="Also take colour, border, centre, detail, arrangement or motion away: what is used?"),
    ] = False,
    reliance_rows: Annotated[int, typer.Option(help="With --reliance: rows to ask about, at most.")] = 500,
    shared_classes: Annotated[
        bool,
        typer.Option("--shared-classes", help="With --on: judge only the classes that both have, also by average precision."),
    ] = False,
    device: Device = "auto",
    executor: Executor = "local",
    address: Address = "",
    gpus: Gpus = 0.0,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Judge a run: accuracy by (class, bias) group and the named averages."""
    from unskew.core import config
    from unskew.core.executor import running
    from unskew.pages.text import group_table
    from unskew.verbs.evaluate import evaluate as verb

    given = _source(run, source, label, bias)
    named = [name for text in bias or [] for name in text.split(",")]
    with running(executor, address, gpus=gpus):
        result = verb(
            run, on or given, split=split, bias=named if given is None else [], device=device, leakage=leakage,
            noise=config.numbers(noise, "noise"), alpha=alpha, rba=rba, attack=attack_by(protocol), fit_on=fit_on,
            corruptions=[name for name in corruptions.split(",") if name], textures=textures, temporal=temporal, erase=erase,
            shared_classes=shared_classes, reliance=reliance, reliance_rows=reliance_rows,
        )  # fmt: skip
    place = "" if given is None else f"\n\npage: {(run.with_name(f'{run.stem}-evaluation') / 'evaluation.html').resolve()}"
    show(result.json(), json, group_table(result) + place)


def _source(run: Path, source: str, label: str, bias: list[str] | None) -> Any:
    """The data set that predictions are about; None for a run, which knows its own."""
    from unskew.core.errors import UserError
    from unskew.data.sources import load_named

    if source:
        if run.is_dir():
            raise UserError(f"--source is for a table of predictions; {run} is a folder: name other data for a run with --on")
        return load_named(source, label=label, bias=[name for text in bias or [] for name in text.split(",")])
    if label or (bias and not run.is_dir()):
        raise UserError("--label and --bias are for a table of predictions with --source; a run knows its label")
    return None
