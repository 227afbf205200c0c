"""The verb `report`: one run, or several side by side, as one HTML file and the same as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew import __version__
from unskew.errors import UserError
from unskew.files import write_json, write_text
from unskew.records import Run
from unskew.report.collect import collect, short_names
from unskew.report.html import render


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    out: str | Path,
    *,
    audit: str | Path = "",
    repairs: Sequence[str | Path] = (),
    on: Any = None,
) -> Path:
    """Write `out` and, beside it, the JSON of the same name. Runs that are not judged yet are judged first.

    `audit` is the folder of an audit and `repairs` are tables of repairs, which then stand on the page before the runs.
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
    if audit:
        content["audit"] = _json_of(Path(audit) / "audit.json", "an audit's folder", ("verdict", "representations"))
    if repairs:
        asked = [Path(table).with_suffix(".json") for table in repairs]
        content["repairs"] = [_json_of(path, "a repair's table", ("repair", "verdict", "groups")) for path in asked]
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    page = render(content)
    write_text(out, page)
    write_json(out.with_suffix(".json"), content)
    return out


def _json_of(path: Path, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The parts of another verb's result that the page shows."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {key: found[key] for key in keys}
    except OSError:
        raise UserError(f"{path} is not there; name {what}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not what unskew wrote, or of an older version; make it again") from None
