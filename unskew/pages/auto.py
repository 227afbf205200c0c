"""The page of `auto`, and the same as text: every candidate with its cost and the reason, and the proof on rows no choice has seen."""

import math
import os
import shlex
from typing import Any

from unskew.core.durations import time_in_words
from unskew.core.version import VERSION
from unskew.pages.html import environment, style
from unskew.pages.verdict import percent
from unskew.records import Auto

TEST = ("class_balanced", "worst_group", "aligned", "conflicting")  # averages of the test rows that are shown
RULES = {
    "val-pseudo-groups": "worst group over class x a biased model's opinion",
    "val-worst-slice": "worst slice of rows that look alike",
    "val-worst-group": "worst (class, bias) group, by the bias labels",
}


def render_auto(result: Auto) -> str:
    """The page."""
    shares = sorted({r.share for t in result.tried for r in t.rungs})
    return environment().get_template("auto.html").render(
        auto=result,
        style=style(),
        version=VERSION,
        shares=shares,
        at=lambda tried, share: next((r for r in tried.rungs if r.share == share), None),
        share_words=lambda share: f"{100 * share:g} % of the steps",
        time=time_in_words,
        rule=RULES[result.rule],
        averages=[name for name in TEST if any(name in f.test for f in result.finalists)],
        known=any(r.known is not None for t in result.tried for r in t.rungs),
        beside=lambda path: os.path.relpath(path, result.page.parent),
        next=next_commands(result),
    )  # fmt: skip


def next_commands(result: Auto) -> list[tuple[str, str]]:
    """(why, command) to go on with."""
    runs = " ".join(shlex.quote(os.path.relpath(f.run)) for f in result.finalists)
    folder = shlex.quote(os.path.relpath(result.page.parent))
    return [
        ("everything about the models on one page", f"unskew report {runs} --audit {folder}/audit --out report.html"),
        ("what the recommended model relies on", f"unskew evaluate {shlex.quote(os.path.relpath(result.run))} --reliance"),
    ]


def auto_text(result: Auto) -> str:
    """What the command prints."""
    lines = [result.verdict, "", f"gate: {result.gate['reason']}"]
    if result.tried:
        lines += ["", f"{'candidate':14} {'':9} {'score':>8} {'balanced':>9} {'cost':>8}  reason"]
        for t in result.tried:
            last: Any = t.rungs[-1] if t.rungs else None
            figures = f"{_or_dash(last.score if last else math.nan):>8} {_or_dash(last.balanced if last else math.nan):>9}"
            lines.append(f"{t.name:14} {t.fate:9} {figures} {time_in_words(t.seconds) if t.rungs else '–':>8}  {t.reason}")
        lines.append(
            f"score: {RULES[result.rule]}; balanced: class-balanced accuracy where the opinion tells nothing; both on "
            f"{result.rows['choice']} training rows held out for the choice"
        )
    lines += ["", f"{'trained on all':14} {'score':>8} {'balanced':>9} {'as it is':>9}  {result.rows['val']} validation rows"]
    for f in result.finalists:
        test = ", ".join(f"{n} {_or_dash(f.test[n].value)}" for n in TEST if n in f.test and not math.isnan(f.test[n].value))
        figures = f"{_or_dash(f.score):>8} {_or_dash(f.balanced):>9} {_or_dash(f.class_balanced):>9}"
        lines.append(f"{f.name:14} {figures}" + (f"  test: {test}" if test else ""))
    lines += ["", *([result.missing_labels] if result.missing_labels else [])]
    lines += [*(f"budget: {text}" for text in result.cut)] or ["budget: nothing was cut"]
    lines.append(f"{time_in_words(result.seconds)} of {time_in_words(result.budget)} spent; recommended: {result.run}")
    return "\n".join(lines)


def _or_dash(value: float) -> str:
    return "–" if math.isnan(value) else percent(value)
