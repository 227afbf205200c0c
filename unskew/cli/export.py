"""`unskew export`: a run or an audit for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json, Trust


@app.command(epilog=examples("unskew export run --as onnx --out network", "unskew export audit --as croissant --out card"))
def export(
    what: Annotated[Path, typer.Argument(metavar="DIR", help="Run folder, or the folder of an audit.")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="A run: torchscript, onnx, safetensors. An audit: croissant, spotlight, fiftyone.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("exported"),
    source: Annotated[str, typer.Option(help="The data, where it has moved or was passed from Python.")] = "",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Write a run as one network file with a model card, or an audit as a table with a data card."""
    from unskew.verbs.export import export as verb

    written = verb(what, form, out, source=source or None)
    note = f"\n{written.note}" if written.note else ""
    show(written.json(), json, "\n".join(f"{written.path / name}" for name in written.files) + note)
