"""The verb `report`: one run, or several side by side, as one HTML file and the same as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew import __version__
from unskew.errors import UserError
from unskew.files import write_json, write_text
from unskew.records import Run
from unskew.report.collect import collect, short_names
from unskew.report.html import render


def report(runs: Run | str | Path | Sequence[Run | str | Path], out: str | Path, *, on: Any = None) -> Path:
    """Write `out` and, beside it, the JSON of the same name. Runs that are not judged yet are judged first.

    `on` is the data of runs that were trained on data from Python, which cannot be read again.
    """
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out}: a page ends in .html")
    listed = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    if not listed:
        raise UserError("a report needs at least one run")
    opened = [r if isinstance(r, Run) else Run(Path(r)) for r in listed]
    named = zip(opened, short_names(opened), strict=True)
    content: dict[str, Any] = {"unskew": __version__, "runs": [collect(run, on) | {"name": name} for run, name in named]}
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    page = render(content)
    write_text(out, page)
    write_json(out.with_suffix(".json"), content)
    return out
