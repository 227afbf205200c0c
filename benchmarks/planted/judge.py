"""What an audit said of a folder, as one row of the table. The only place that decides what counts as found."""

from collections.abc import Sequence
from typing import Any

from planted.folders import Folder

READABLE = 0.02  # a smaller share of the label is a trace, not a shortcut
# What can never be the subject itself; anything else that is readable in a set with real classes is a question, not a false alarm.
NEVER_CONTENT = ("exif", "dimensions", "sensor", "encoder:part=header")


def above_chance(finding: Any) -> bool:
    return bool(finding.low > 0 and finding.bias > finding.chance_high)


def leading(findings: Sequence[Any]) -> Any | None:
    """The finding an audit should name: the one that reads most. A network that reads anything at all has no name for what it reads, so
    it leads only if nothing else reads half as much."""
    if not findings:
        return None
    named = [f for f in findings if not f.name.startswith("local")]
    return named[0] if named and named[0].bias >= findings[0].bias / 2 else findings[0]


def judged(folder: Folder, audit: Any) -> dict[str, Any]:
    """Found: one of the right representations is readable above chance. Shortcut: by more than a trace, and not as content.
    First: the leading finding is a right one. False: in a clean set, anything is called a shortcut that cannot be content."""
    findings = [f for f in audit.findings if above_chance(f)]
    right = folder.kind.names if folder.kind is not None else ()
    mine = [f for f in findings if f.name.startswith(right)] if right else []
    strong = [f for f in findings if f.bias >= READABLE]
    top = leading(findings)
    cannot = [f for f in strong if f.name.startswith(NEVER_CONTENT)]
    wrong = cannot if folder.group == "content" else strong
    return {
        "found": int(bool(mine)),
        "shortcut": int(any(f.bias >= READABLE and not f.content for f in mine)),
        "first": int(bool(mine) and top is not None and top.name.startswith(right)),
        "false": int(bool(wrong)) if folder.kind is None else "",
        "leading": "" if top is None else top.name,
        "bias": "" if top is None else f"{top.bias:.3f}",
        "right": mine[0].name if mine else "",
        "right bias": f"{mine[0].bias:.3f}" if mine else "",
        "above chance": " ".join(f"{f.name}={f.bias:.3f}" for f in findings),
    }
