"""`unskew demo`: the whole pipe on embedded digits."""

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, show
from unskew.cli.options import Json, Seed


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run and the page.")] = Path("demo-out"),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """The whole pipe on a built-in biased digit set, minutes on two cores."""
    from unskew.verbs.demo import demo as verb

    found, text = verb(out, seed)
    show(found, json, text)
