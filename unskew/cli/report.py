"""`unskew report`: one page about runs."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json, Trust


@app.command(epilog=examples("unskew report run --out page.html", "unskew report erm pgd --audit audit --out page.html"))
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several are shown side by side.")],
    audit: Annotated[str, typer.Option(help="Folder of an audit to show before the runs.")] = "",
    repair: Annotated[
        Optional[list[str]], typer.Option(help="Table of a repair to show before the runs; may be given several times.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Write one page about one run or several, and the same as JSON."""
    from unskew.verbs.report import report as verb

    page = verb(runs, out, audit=audit, repairs=repair or [])
    show({"page": str(page), "json": str(page.with_suffix(".json"))}, json, f"page: {page}")
