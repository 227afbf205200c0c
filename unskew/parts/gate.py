"""Is there a shortcut that a simple model lives on? What an audit found, as a yes or no with the reason.

Yes, if a finding is a shortcut and a simple model follows it: where it points to another class, that model is right less often than
by chance (parts.findings). Or if the audit's trial supports a remedy: something simple explains which rows that model gets wrong, and
balancing against it, or taking it out, helps, both for certain (parts.trial). What can be read but is not followed, and what only the
user can judge, does not count.
"""

from dataclasses import dataclass
from typing import Any

from unskew.parts.findings import leading
from unskew.records import Audit, Finding


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether anything is tried, and what was named as the shortcut."""

    open: bool
    reason: str  # in a sentence or more, without the first capital and the last stop
    named: tuple[str, ...]  # representations, the clearest first

    def json(self) -> dict[str, Any]:
        return {"open": self.open, "reason": self.reason, "named": list(self.named)}


def gate(found: Audit) -> Gate:
    """The answer from an audit's findings and its trial."""
    tried = found.trial or {}
    classes = max(2, len(found.data["classes"]))
    shortcuts = [f for f in leading(found.findings) if f.verdict == "shortcut"]
    supported = tried["named"] if tried.get("supports") else ()
    lived_on = [f for f in shortcuts if f.name in supported or (f.followed is not None and f.followed < 1 / classes)]
    if lived_on:
        return Gate(True, f"a simple model lives on {_listed(lived_on)}", tuple(f.name for f in lived_on))
    if supported:
        return Gate(True, f"a trial on features supports a remedy: {tried['reason']}", tuple(supported))
    if found.trial is None:
        return Gate(
            False, "nothing can be tried on this data: it needs inputs, one class per row and ten rows of every class", ()
        )
    open_questions = [f for f in leading(found.findings) if f.verdict == "question"]
    asked = f". Whether {_listed(open_questions[:2])} should tell the class, only you can say" if open_questions else ""
    why = tried["reason"]
    return Gate(False, f"no simple model lives on a shortcut here. {why[:1].upper()}{why[1:]}{asked}", ())


def _listed(findings: list[Finding]) -> str:
    names = [f.phrase or f.label or f.name for f in findings]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
