"""The verb `report`: one run, or several side by side, as one HTML file and the same as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import nothing_left, write_json, write_text
from unskew.core.version import VERSION
from unskew.core.workplace import alone
from unskew.pages.collect import collect, short_names
from unskew.pages.runs import render
from unskew.records import Run
from unskew.verbs.evaluate import recall


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    out: str | Path = "report.html",
    *,
    audit: str | Path = "",
    repairs: Sequence[str | Path] = (),
    on: Any = None,
) -> Path:
    """Write `out` and, beside it, the JSON of the same name. Runs that are not judged yet are judged first."""
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out}: the name of a page must end in .html")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    listed = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    if not listed:
        raise UserError("a report needs at least one run")
    opened = [r if isinstance(r, Run) else Run(Path(r)) for r in listed]
    before: dict[str, Any] = {}
    if audit:
        before["audit"] = _json_of(Path(audit) / "audit.json", "an audit's folder", ("verdict", "representations"))
    if repairs:
        asked = [Path(table).with_suffix(".json") for table in repairs]
        before["repairs"] = [_json_of(path, "a repair's table", ("repair", "verdict", "groups")) for path in asked]
    with alone(out, "report"):
        named = zip(opened, short_names(opened), strict=True)
        content = {
            "unskew": VERSION,
            "runs": [_of_run(run, on, 1 / len(opened)) | {"name": name} for run, name in named],
            **before,
        }
        with nothing_left(out, out.with_suffix(".json")):
            with refusing("the page cannot be written from these results; one of the files named is damaged"):
                page = render(content)
            write_text(out, page)
            write_json(out.with_suffix(".json"), content)
    return out


def _of_run(run: Run, on: Any, share: float) -> dict[str, Any]:
    """What the page says about a run, judged on its test split, or on val if it has none."""
    split = "test" if on is not None or run.config["data"]["rows"].get("test") else "val"
    return collect(run, recall(run, split, on), share)


def _json_of(path: Path, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The parts of another verb's result that the page shows."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {key: content[key] for key in keys}
    except OSError:
        raise UserError(f"{path} does not exist; name {what}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UserError(f"{path} was not written by this version of unskew; make it again") from None
