"""What an audit said of a folder, as one row of the table. The only place that decides what counts as found."""

from typing import Any

from benchmarks.planted.folders import Folder
from unskew.parts.findings import leading, pressing

SAID = ("shortcut", "question")


def judged(folder: Folder, audit: Any) -> dict[str, Any]:
    """Found: one of the right representations is called a shortcut or asked about. Shortcut: called a shortcut. First: the first row of
    the table is a right one. False: in a clean set, anything is called a shortcut. Questions: separate things that are asked about, but
    for those of which a trial says that a simple model hardly goes by them."""
    said = [f for f in audit.findings if f.verdict in SAID]
    right = folder.kind.names if folder.kind is not None else ()
    mine = [f for f in said if right and f.name.startswith(right)]
    top = said[0] if said else None
    return {
        "found": int(bool(mine)),
        "shortcut": int(any(f.verdict == "shortcut" for f in mine)),
        "first": int(bool(right) and top is not None and top.name.startswith(right)),
        "false": int(any(f.verdict == "shortcut" for f in said)) if folder.kind is None else "",
        "questions": sum(f.verdict == "question" and pressing(f) for f in leading(audit.findings)),
        "leading": "" if top is None else top.name,
        "bias": "" if top is None else f"{top.bias:.3f}",
        "right": mine[0].name if mine else "",
        "right bias": f"{mine[0].bias:.3f}" if mine else "",
        "above chance": " ".join(f"{f.name}={f.bias:.3f}({f.verdict})" for f in said),
    }
