"""The verb `report`: one run, or several side by side, as one HTML file and the same as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew import __version__
from unskew.errors import UserError
from unskew.files import write_json, write_text
from unskew.records import Run
from unskew.report.collect import collect
from unskew.report.html import render


def report(runs: Run | str | Path | Sequence[Run | str | Path], out: str | Path) -> Path:
    """Write `out` and, beside it, the JSON of the same name. Runs that are not judged yet are judged first."""
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out}: a page ends in .html")
    listed = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    if not listed:
        raise UserError("a report needs at least one run")
    opened = [r if isinstance(r, Run) else Run(Path(r)) for r in listed]
    content: dict[str, Any] = {"unskew": __version__, "runs": [collect(run) for run in opened]}
    write_json(out.with_suffix(".json"), content)
    write_text(out, render(content))
    return out
