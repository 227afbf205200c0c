"""`unskew explore`: look at rows in a browser, tag what you see, measure the tag."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Bias, Group, Json, Label, Settings, Split, Trust, columns


@app.command(epilog=examples("unskew explore audit", "unskew explore photos/ --write"))
def explore(
    place: Annotated[str, typer.Argument(help="An audit, a repair, a run, a folder of these, or a source.")],
    settings: Settings = None,
    write: Annotated[bool, typer.Option("--write", help="Allow tags, rows to drop and new labels to be written.")] = False,
    tags: Annotated[Optional[Path], typer.Option(help="Table to write them to; beside the source if not given.")] = None,
    port: Annotated[int, typer.Option(help="Port on this machine; 0: one that is free.")] = 0,
    most: Annotated[int, typer.Option(help="Rows whose features are computed for the map and for spreading; 0: all.")] = 20_000,
    open_: Annotated[bool, typer.Option("--open", help="Also open the address in a browser.")] = False,
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    group: Group = "",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Look at the rows in a browser on this machine, filter and tag them, and see what a tag gives away. Stop with Ctrl-C."""
    from unskew.core import config
    from unskew.core.errors import UserError
    from unskew.core.settings import Settings as Given
    from unskew.explore.server import Serving
    from unskew.explore.server import explore as verb

    if tags is not None and tags.suffix != ".parquet":
        raise UserError(f"--tags {tags}: the name of a table must end in .parquet")
    given = Given.of(config.words(settings or []) | columns(label, bias, split, group))
    unused = [*given.training().shared().dotted(), *given.own]
    if unused:
        raise UserError(f"setting {unused[0]!r}: nothing is trained; settings begin with data., such as data.size=64")

    def say(serving: Serving) -> None:
        allowed = f"tags are written to {serving.table}" if serving.write else "read-only; --write allows tags"
        show(serving.json(), json, f"{serving.address}\n{serving.rows:,} rows; {allowed}. Stop with Ctrl-C.")
        if open_:
            import webbrowser

            webbrowser.open(serving.address)

    verb(place, settings=given["data"], write=write, port=port, most=most, tags=tags, say=say)
