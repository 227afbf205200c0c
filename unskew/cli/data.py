"""`unskew data`: a built-in data set on disk."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.app import app, show, stop
from unskew.cli.options import Json, Settings


@app.command()
def data(
    name: Annotated[str, typer.Argument(help="See: unskew list data.")],
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("data"),
    how: Annotated[str, typer.Option("--as", help="npz (one array file), or images (class folders and metadata.csv).")] = "npz",
    root: Annotated[str, typer.Option(help="Where a real set lies on disk, in its official layout.")] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: say what of a real set is there and what is missing.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a built-in data set to disk, or check a real one."""
    from unskew.data import load
    from unskew.data.write import write

    settings = [*(settings or []), *([f"root={root}"] if root else [])]
    if check:
        from unskew.data.check import check as look

        found = look(name, root)
        show(found, json, found.pop("text"))
        if not found["whole"]:
            stop(2, f"{name}: not complete in {root}")
        return
    started = time.perf_counter()
    made = load(f"{name}:{','.join(settings or [])}")
    place = write(made, out, how)
    about = {**made.describe(), "seconds": time.perf_counter() - started}
    rows = ", ".join(f"{n} {s}" for s, n in about["rows"].items() if n)
    columns = [word for name in made.bias_names for word in ("--bias", name)] if how == "images" else []
    show(
        {"out": str(place), **about},
        json,
        f"{place}: {rows}; bias columns: {', '.join(made.bias_names) or 'none'}; {about['seconds']:.1f} s\n"
        f"as a source: {shlex.join([str(place), *columns])}",
    )
