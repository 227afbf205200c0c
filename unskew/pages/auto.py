"""The page of `auto`, and the same as text: every candidate with its cost and the reason, and the proof on rows no choice has seen."""

import math
import os
import shlex
from typing import Any

from unskew.core.durations import time_in_words
from unskew.core.version import VERSION
from unskew.pages.charts import NOTHING, Drawing, draw
from unskew.pages.first import DOUBT, GOOD, First, Number, Todo, in_two, sorted_changes
from unskew.pages.html import page
from unskew.pages.verdict import percent
from unskew.records import Auto, Finalist

TEST = ("class_balanced", "worst_group", "aligned", "conflicting")  # averages of the test rows that are shown
RULES = {
    "val-pseudo-groups": "worst group over class x a biased model's opinion",
    "val-worst-slice": "worst slice of rows that look alike",
    "val-worst-group": "worst (class, bias) group, by the bias labels",
}


def render_auto(result: Auto) -> str:
    """The page."""
    return page(
        "auto.html",
        kind="auto",
        name=result.source,
        about=f"{time_in_words(result.seconds)} of {time_in_words(result.budget)} spent · seed {result.seed}",
        first=first_of(result),
        footer=f"unskew {VERSION} · every figure here is in auto.json",
        auto=result,
        shares=sorted({r.share for t in result.tried for r in t.rungs}),
        at=lambda tried, share: next((r for r in tried.rungs if r.share == share), None),
        time=time_in_words,
        rule=RULES[result.rule],
        averages=[n for n in TEST if any(n in f.test and not math.isnan(f.test[n].value) for f in result.finalists)],
        known=any(r.known is not None for t in result.tried for r in t.rungs),
        beside=lambda path: os.path.relpath(path, result.page.parent),
    )


def first_of(result: Auto) -> First:
    """The first screen: what is recommended, what it gains and loses, and what to do with it."""
    sentence, more = in_two(result.verdict)
    erm, last = result.finalists[0], result.finalists[-1]
    chosen = next(f for f in result.finalists if f.name == result.recommended)
    cut = f"The budget cut something: {'; '.join(result.cut)}." if result.cut else "The budget cut nothing."
    numbers = []
    if result.gain is not None:
        note = f"{last.name}; erm {_or_dash(erm.score)}"
        numbers.append(Number(value=_or_dash(last.score), label="worst group, validation rows", note=note))
        gain, error = (100 * v for v in result.gain)
        label = "points of class-balanced accuracy where the shortcut tells nothing"
        numbers.append(Number(value=f"{gain:+.1f}", label=label, note=f"standard error {error:.1f}"))
    elif not math.isnan(chosen.class_balanced):
        numbers += _plain_numbers(chosen)
    numbers.append(Number(value=time_in_words(result.seconds), label="spent", note=f"of {time_in_words(result.budget)}"))
    gained, lost = sorted_changes(_changes(erm, last)) if last is not erm else ([], [])
    tone = DOUBT if result.gate["open"] and chosen is erm else GOOD
    todo = [Todo(why=why, command=command) for why, command in next_commands(result)]
    return First(
        tone=tone, sentence=sentence, more=[*more, cut], numbers=numbers, chart=chart(result), todo=todo, gained=gained, lost=lost
    )  # fmt: skip


def _plain_numbers(chosen: Finalist) -> list[Number]:
    """Where nothing was tried: how good the plain model is."""
    label = "right, mean over classes, validation rows"
    numbers = [Number(value=percent(chosen.class_balanced), label=label, note=f"{chosen.name}, n {chosen.rows}")]
    test = chosen.test.get("class_balanced")
    if test is not None and not math.isnan(test.value):
        note = f"95 % interval {percent(test.low)} to {percent(test.high)}, n {test.n}"
        numbers.insert(0, Number(value=percent(test.value), label="right, mean over classes, test rows", note=note))
    return numbers


def _changes(erm: Finalist, last: Finalist) -> dict[str, tuple[float | None, float | None]]:
    """Every figure of the two models, as before and after."""
    pairs: dict[str, tuple[float | None, float | None]] = {
        "worst group of class x opinion, validation rows": (erm.score, last.score),
        "class-balanced accuracy where the opinion tells nothing, validation rows": (erm.balanced, last.balanced),
        "class-balanced accuracy of validation rows as they are": (erm.class_balanced, last.class_balanced),
    }
    known = {f"{n.replace('_', ' ')}, test rows": (erm.test[n].value, last.test[n].value) for n in TEST if n in erm.test}
    return pairs | known


def chart(result: Auto) -> Drawing:
    """The score of every candidate in its last rung, beside its cost."""
    import altair as alt

    rows = [
        {"candidate": f"{t.name}, {time_in_words(t.seconds)}", "score": t.rungs[-1].score, "fate": t.fate, "seconds": t.seconds}
        for t in result.tried
        if t.rungs
    ]
    if not rows:
        return _finalists(result)
    base = alt.Chart(alt.Data(values=rows), width=420).encode(
        y=alt.Y("candidate:N", sort=[r["candidate"] for r in rows], title=None, axis=alt.Axis(labelLimit=220)),
        x=alt.X("score:Q", title="score", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("fate:N", legend=None, scale=alt.Scale(domain=["winner", "dropped"], range=["#3f978a", "#9aa5ad"])),
    )
    drawn = base.mark_bar(height=14).properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5})
    return draw(drawn, rows, "candidates", "score of every candidate in its last rung; dark: the winner")


def _finalists(result: Auto) -> Drawing:
    """Where no candidate was tried: the plain models side by side."""
    import altair as alt

    rows = [
        {"model": f.name, "rows": kind, "accuracy": value}
        for f in result.finalists
        for kind, value in (
            ("validation", f.class_balanced),
            ("test", f.test["class_balanced"].value if "class_balanced" in f.test else math.nan),
        )
        if not math.isnan(value)
    ]
    if not rows:
        return NOTHING
    bars = (
        alt.Chart(alt.Data(values=rows), width=420)
        .mark_bar(color="#3f978a", height=14)
        .encode(
            y=alt.Y("model:N", sort=None, title=None),
            yOffset="rows:N",
            x=alt.X("accuracy:Q", title="right, mean over classes", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            opacity=alt.Opacity(
                "rows:N",
                title=None,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=["validation", "test"], range=[0.55, 1]),
            ),
        )
    )
    return draw(bars, rows, "models", "accuracy of the plain models, mean over classes")


def next_commands(result: Auto) -> list[tuple[str, str]]:
    """(why, command) of the next steps."""
    runs = " ".join(shlex.quote(str(f.run)) for f in result.finalists)
    audit = shlex.quote(str(result.audit.parent))
    return [
        ("Judge the models and see everything about them on one page", f"unskew report {runs} --audit {audit} --out report.html"),
        ("See what the recommended model relies on", f"unskew evaluate {shlex.quote(str(result.run))} --reliance"),
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
