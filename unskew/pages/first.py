"""The first screen of a page: the verdict and what it means, three numbers, pictures that show it, what to do."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unskew.pages.charts import NOTHING, Drawing
from unskew.pages.samples import Sample

BAD, DOUBT, GOOD, INFO = "bad", "doubt", "good", "info"
TONES = {  # of a run's verdict
    "collapsed": BAD, "inverted": BAD, "memorised": BAD, "under-trained": BAD, "takes-shortcut": BAD, "leans": DOUBT,
    "worse-aligned": DOUBT, "unclear": DOUBT, "no-bias-column": INFO, "multi-label": INFO, "no-shortcut": GOOD,
}  # fmt: skip
MOST = 6  # pictures on each side


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A figure, what it is, and how sure it is."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Pictures of one kind, to be shown beside those of the other."""

    title: str
    samples: Sequence[Sample]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """Something to do, with the command for it if there is one."""

    why: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first screen. `tone` is bad, doubt, good or info; `more` says the rest of the verdict."""

    tone: str
    sentence: str
    more: Sequence[str] = ()
    numbers: Sequence[Number] = ()
    sides: Sequence[Side] = ()
    chart: Drawing = NOTHING  # where there are no pictures
    todo: Sequence[Todo] = ()
    gained: Sequence[str] = ()
    lost: Sequence[str] = ()


def in_two(text: str) -> tuple[str, list[str]]:
    """The first sentence, and the rest.

    >>> in_two("Shortcut or signal? Colour tells it: 80.5 % of the label. Only you can say. Two more below.")
    ('Shortcut or signal? Colour tells it: 80.5 % of the label.', ['Only you can say. Two more below.'])
    """
    head, *rest = re.split(r"(?<=\.)\s+(?=[A-Z0-9])", text, maxsplit=1)
    return head, rest


def spread(samples: Sequence[Sample], most: int = MOST) -> list[Sample]:
    """The first of every class, then the second of every class, and so on."""
    seen: dict[str, int] = {}
    ranked = []
    for k, one in enumerate(samples):
        seen[one["label"]] = seen.get(one["label"], -1) + 1
        ranked.append((seen[one["label"]], k))
    return [samples[k] for _, k in sorted(ranked)[:most]]


def change(name: str, before: float, after: float) -> tuple[bool, str]:
    """Whether a share has grown, and the sentence that says so.

    >>> change("conflicting rows", 0.449, 0.92)
    (True, 'conflicting rows: 44.9 % to 92.0 % (+47.1 points)')
    """
    points = 100 * (after - before)
    return points >= 0, f"{name}: {100 * before:.1f} % to {100 * after:.1f} % ({points:+.1f} points)"


def sorted_changes(pairs: Mapping[str, tuple[float | None, float | None]]) -> tuple[list[str], list[str]]:
    """What was gained and what was lost, of shares before and after; those that are not defined are left out.

    >>> sorted_changes({"a": (0.5, 0.75), "b": (0.5, 0.25), "c": (None, 0.1), "d": (0.5, 0.5)})
    (['a: 50.0 % to 75.0 % (+25.0 points)'], ['b: 50.0 % to 25.0 % (-25.0 points)'])
    """
    gained: list[str] = []
    lost: list[str] = []
    for name, (before, after) in pairs.items():
        if before is None or after is None or before != before or after != after or abs(after - before) < 5e-4:
            continue
        grown, words = change(name, before, after)
        (gained if grown else lost).append(words)
    return gained, lost
