"""`unskew bench`: a published table, reproduced."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, show, stop
from unskew.cli.options import Json, Settings, command


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="See: unskew list suites; or a TOML file. `report` only writes the report again.")],
    settings: Settings = None,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "smoke",
    executor: Annotated[str, typer.Option("--executor", "--on", help="local, or ray.")] = "local",
    address: Annotated[
        str, typer.Option(help="With --executor ray: of a cluster that runs; one is started here if not given.")
    ] = "",
    only: Annotated[str, typer.Option(help="Methods, data sets or settings of the suite, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="How many (3) or which (1..2); the scale's own if not given.")] = "0",
    root: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME=DIR", help="Where a real set of the suite lies; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs side by side; as many as there are cores if not given.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Refuse to start a new bench; resuming itself needs no option.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for runs, results and report.")] = Path("bench"),
    json: Json = False,
) -> None:
    """Reproduce a published table: every run of a suite, beside its numbers. Run again, it resumes."""
    from unskew.core import config
    from unskew.pages.bench import table_text
    from unskew.verbs.bench import again
    from unskew.verbs.bench import bench as verb

    if suite == "report":
        found = again(out)
    else:
        found = verb(
            suite, scale=scale, on=executor, out=out, seeds=seeds, only=[w.strip() for w in only.split(",") if w.strip()], workers=workers,
            address=address, settings=config.words(settings or []), roots=config.words(root or []), resume=resume,
            command=command(),
        )  # fmt: skip
    show(found.json(), json, f"{table_text(found)}\n\npage: {found.page}")
    if found.failed:
        stop(1, f"{len(found.failed)} runs failed: {', '.join(found.failed[:5])}; see their logs in {out / 'tasks'}")
