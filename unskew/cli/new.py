"""`unskew new`: the files of a new component, with a passing test."""

from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json


@app.command(epilog=examples("unskew new method mypackage.mine", "unskew new suite my-table"))
def new(
    kind: Annotated[str, typer.Argument(help="method, representation or suite.")],
    name: Annotated[
        str, typer.Argument(help="NAME in a checkout of unskew; package.NAME for a module of your own, in the current folder.")
    ],
    json: Json = False,
) -> None:
    """Write the files of a new method, representation or suite, which run as they are; with a test that passes."""
    from unskew.verbs.new import new as verb

    files = verb(kind, name)
    text = "\n".join([*(f"wrote {path}" for path in files.paths), f"next: {files.next}"])
    show(files.json(), json, text)
