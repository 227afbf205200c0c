"""`unskew data`: a built-in data set on disk."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, examples, show, stop
from unskew.cli.options import Json


@app.command(
    epilog=examples(
        "unskew data colored-mnist ratio=0.99 --out cmnist",
        "unskew data celeba --root DIR --check",
        "unskew data photos/ --as shards --out shards",
    )
)
def data(
    name: Annotated[str, typer.Argument(help="See: unskew list data; for shards and tar also a folder or a table.")],
    settings: Annotated[
        Optional[list[str]], typer.Argument(metavar="[KEY=VALUE]...", help="Settings of the data set, e.g. ratio=0.99.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("data"),
    how: Annotated[
        str, typer.Option("--as", help="npz (one array file), images (class folders, metadata.csv), shards (Parquet) or tar.")
    ] = "npz",
    root: Annotated[str, typer.Option(help="Folder of a real set, in its official layout.")] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; list what is present and what is missing of a real set.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a built-in data set to disk, any source as shards, or check a real one."""
    if check:
        from unskew.data.check import check as look

        result = look(name, root)
        show(result, json, result.pop("text"))
        if not result["whole"]:
            stop(2, f"{name} is not complete in {root}")
        return
    from unskew.data import load
    from unskew.data.write import write

    settings = [*(settings or []), *([f"root={root}"] if root else [])]
    started = time.perf_counter()
    data_set = load(f"{name}{',' if ':' in name else ':'}{','.join(settings)}" if settings else name)
    place = write(data_set, out, how)
    about = {**data_set.describe(), "seconds": time.perf_counter() - started}
    rows = ", ".join(f"{n} {s}" for s, n in about["rows"].items() if n)
    columns = [word for name in data_set.bias_names for word in ("--bias", name)] if how != "npz" else []
    show(
        {"out": str(place), **about},
        json,
        f"{place}: {rows}; bias columns: {', '.join(data_set.bias_names) or 'none'}; {about['seconds']:.1f} s\n"
        f"as a source: {shlex.join([str(place), *columns])}",
    )
