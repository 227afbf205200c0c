"""What an audit's trial said of a data set, remembered for the verbs that come later: advice needs a trial, and one is enough."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.core.fetch import cache
from unskew.core.files import write_json
from unskew.data.dataset import DataSet

if TYPE_CHECKING:  # a training asks what was tried, and needs nothing of what a trial is made of
    from unskew.parts.trial import Trial


def note_trial(data: DataSet, tried: "Trial") -> None:
    """Keep the answer of a trial on this data set, unless there was nothing to try."""
    if not tried.nuisances:
        return
    write_json(_path(data), {"supports": tried.supports, "reason": tried.reason, "removed": tried.removed})


def trial_on(data: DataSet) -> tuple[bool, str, str] | None:
    """(whether a trial supported a remedy, its reason, what that takes out of the pictures); None if none was made, or the cache was
    cleared. Nothing is taken out where rows are balanced."""
    try:
        there = json.loads(_path(data).read_text(encoding="utf-8"))
        return bool(there["supports"]), str(there["reason"]), str(there.get("removed", ""))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(data: DataSet) -> Path:
    return cache() / "trials" / f"{data.fingerprint}.json"
