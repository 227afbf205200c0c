"""`unskew bench`: a published table, reproduced."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from unskew.cli.app import app, examples, show, stop
from unskew.cli.options import Address, Gpus, Json, Settings, Trust, command


@app.command(
    epilog=examples("unskew bench pgd-table1 --scale smoke --out bench", "unskew bench report --out bench --page table.md")
)
def bench(
    suite: Annotated[str, typer.Argument(help="See: unskew list suites; or a TOML file. `report` only writes the report again.")],
    settings: Settings = None,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "smoke",
    executor: Annotated[str, typer.Option("--executor", "--on", help="local, or ray.")] = "local",
    address: Address = "",
    gpus: Gpus = 0.0,
    only: Annotated[str, typer.Option(help="Methods, data sets or settings of the suite, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="Number of seeds (3) or a range (1..2); the scale's own if not given.")] = "0",
    root: Annotated[
        Optional[list[str]],
        typer.Option(metavar="NAME=DIR", help="Folder of a real set of the suite; may be given several times."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of runs side by side; one per core if not given.")] = 0,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Only resume: refuse to start a new bench. Without it, an existing bench is resumed too."),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for runs, results and report.")] = Path("bench"),
    page: Annotated[
        Optional[Path],
        typer.Option(metavar="NAME.md", help="With `report`: put the runs into NAME.csv and write the page NAME.md from it."),
    ] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Reproduce a published table: every run of a suite, beside the published numbers. Run the same command again to resume."""
    from unskew.core import config
    from unskew.core.errors import UserError
    from unskew.pages.bench import table_text
    from unskew.verbs.bench import again
    from unskew.verbs.bench import bench as verb

    if suite == "report":
        result = again(out, page)
    elif page is not None:
        raise UserError("--page goes with report: unskew bench report --out FOLDER --page NAME.md")
    else:
        result = verb(
            suite, scale=scale, on=executor, out=out, seeds=seeds, only=[w.strip() for w in only.split(",") if w.strip()], workers=workers,
            address=address, gpus=gpus, settings=config.words(settings or []), roots=config.words(root or []), resume=resume,
            command=command(),
        )  # fmt: skip
    show(result.json(), json, f"{table_text(result)}\n\npage: {result.page}")
    if result.failed:
        stop(1, f"{len(result.failed)} runs failed: {', '.join(result.failed[:5])}; see their logs in {out / 'tasks'}")
