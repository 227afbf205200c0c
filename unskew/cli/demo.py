"""`unskew demo`: the whole pipeline on embedded digits."""

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json, Seed


@app.command(epilog=examples("unskew demo --out demo-out"))
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the page.")] = Path("demo-out"),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Run the whole pipeline on a built-in set of biased digits; takes minutes on two cores."""
    from unskew.verbs.demo import demo as verb

    result, text = verb(out, seed)
    show(result, json, text)
