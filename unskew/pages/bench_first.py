"""The first screen of a bench's page: how far it is, how near the published numbers, what the best method gains and costs."""

from typing import Any

import polars as pl

from unskew.core.durations import time_in_words
from unskew.pages.charts import INK, NOTHING, Drawing, draw
from unskew.pages.first import BAD, DOUBT, GOOD, INFO, First, Number, Todo

NEAR = 3.0  # points from a published number
WITHOUT = ("worst_group", "conflicting", "group_mean", "class_balanced")  # figures that a shortcut does not lift, clearest first
LOWER = ("beta", "cost", "leakage.", "repair.bias_")  # beginnings of figures of which less is better
Block = dict[str, Any]  # of bench._blocks


def first_of(report: dict[str, Any], blocks: list[Block], failed: list[str], baseline: str) -> First:
    """The first screen of a bench."""
    compared = [abs(row["difference"]) for row in report["table"] if row["difference"] is not None]
    near = sum(d <= NEAR for d in compared)
    whole = report["done"] == report["runs"] and not failed
    best = _best(blocks[0]) if blocks else None
    done = f"{report['done']} of {report['runs']} runs are finished"
    leads = _leads(blocks[0], best, baseline) if best else ""
    if compared:
        sentence = f"{done}; {near} of {len(compared)} figures are within {NEAR:g} points of the published ones."
        more = [leads] if leads else []
    else:
        sentence, more = (leads, [f"{done}."]) if leads else (f"{done}.", [])
    numbers = _numbers(report, blocks, best, baseline)
    if compared:
        numbers.insert(0, Number(value=f"{near} of {len(compared)}", label=f"figures within {NEAR:g} points of published ones"))
    gained, lost = _balance(blocks, baseline)
    tone = BAD if failed else DOUBT if not whole or (compared and 2 * near < len(compared)) else GOOD if compared else INFO
    return First(
        tone=tone, sentence=sentence, more=more, numbers=numbers[:3], chart=blocks[0]["chart"] if blocks else NOTHING,
        todo=_todo(report, whole), gained=gained, lost=lost,
    )  # fmt: skip


def _numbers(report: dict[str, Any], blocks: list[Block], best: dict[str, Any] | None, baseline: str) -> list[Number]:
    """What the best method reaches and costs, how many runs are finished, and how long they took."""
    numbers = []
    if best:
        figure = judged_by(blocks[0]["figures"])
        base = next((m for m in blocks[0]["methods"] if m["name"] == baseline), None)
        known = _mean(base, figure) if base is not None and base is not best else None
        note = f"{best['name']} on {_place(blocks[0])}" + (f"; {baseline} {known:.1f}" if known is not None else "")
        numbers.append(Number(value=f"{_mean(best, figure):.1f}", label=_words(figure), note=note))
        if best["cost"] is not None and best["name"] != baseline and figure != "cost":
            numbers.append(Number(value=f"{best['cost']:.2f}", label=f"times the cost of {baseline}", note=f"for {best['name']}"))
    numbers.append(Number(value=f"{report['done']} of {report['runs']}", label="runs finished"))
    numbers.append(Number(value=time_in_words(report["seconds"]), label="of training", note="all runs together"))
    return numbers


def _leads(block: Block, best: dict[str, Any], baseline: str) -> str:
    """The best method in a sentence, beside the baseline."""
    figure = judged_by(block["figures"])
    base = next((m for m in block["methods"] if m["name"] == baseline), None)
    known = _mean(base, figure) if base is not None else None
    beside = f"; {baseline} has {known:.1f}" if known is not None and base is not best else ""
    return f"{best['name']} is best on {_place(block)}: {_words(figure)} {_mean(best, figure):.1f}{beside}."


def _todo(report: dict[str, Any], whole: bool) -> list[Todo]:
    if not whole:
        command = (report["commands"] or ["unskew bench ..."])[-1]
        return [Todo(why="Run it again to finish: it resumes", command=command)]
    if report["scale"] == "smoke":
        return [Todo(why="A smoke run shows that everything works. Compare methods at --scale small or paper, in another --out.")]
    return [Todo(why="Look at the gain beside the loss, and at the spread over seeds, before you call a method better.")]


def judged_by(figures: list[str]) -> str:
    """The figure by which methods are ranked: one that a shortcut does not lift, if there is one, else the first.

    >>> judged_by(["aligned", "conflicting"]), judged_by(["plain", "textures.value"])
    ('conflicting', 'plain')
    """
    return next((name for name in WITHOUT if name in figures), figures[0])


def _words(figure: str) -> str:
    return figure.replace("_", " ").replace(".", " ")


def _place(block: Block) -> str:
    return " ".join(filter(None, (block["data"], block["at"])))


def _mean(method: dict[str, Any], figure: str) -> float | None:
    value: float | None = next((f["mean"] for f in method["figures"] if f["figure"] == figure), None)
    return value


def _best(block: Block) -> dict[str, Any] | None:
    """The method that is best by the figure the block is judged by."""
    figure = judged_by(block["figures"])
    sign = -1 if figure.startswith(LOWER) else 1
    known = [(sign * mean, m) for m in block["methods"] if (mean := _mean(m, figure)) is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _balance(blocks: list[Block], baseline: str) -> tuple[list[str], list[str]]:
    """On each data set, what the best method gains over the baseline, and what it costs."""
    gained: list[str] = []
    lost: list[str] = []
    for block in blocks:
        best, base = _best(block), next((m for m in block["methods"] if m["name"] == baseline), None)
        if best is None or base is None or best is base:
            continue
        for figure in block["figures"]:
            ours, theirs = _mean(best, figure), _mean(base, figure)
            if ours is None or theirs is None or figure == "cost" or f"{ours:.1f}" == f"{theirs:.1f}":
                continue
            words = f"{_place(block)}: {best['name']} {_words(figure)} {theirs:.1f} to {ours:.1f}"
            (gained if (ours > theirs) is not figure.startswith(LOWER) else lost).append(words)
        if best["cost"] is not None and best["cost"] > 1.1:
            lost.append(f"{_place(block)}: {best['name']} costs {best['cost']:.1f} times the training of {baseline}")
    return gained, lost


def chart(part: pl.DataFrame, figure: str) -> Drawing:
    """One figure of every method with its spread, and the published one as a ring."""
    import altair as alt

    rows = [
        {"method": r["method"], "mean": r["mean"], "low": r["mean"] - (r["spread"] or 0.0), "high": r["mean"] + (r["spread"] or 0.0),
         "published": r["published_mean"]}
        for r in part.filter(pl.col("figure") == figure).to_dicts() if r["mean"] is not None
    ]  # fmt: skip
    if not rows:
        return NOTHING
    base = alt.Chart(alt.Data(values=rows), width=420).encode(
        y=alt.Y("method:N", sort=[r["method"] for r in rows], title=None, axis=alt.Axis(labelLimit=220))
    )
    bars = base.mark_bar(height=14, color="#3f978a").encode(x=alt.X("mean:Q", title=_words(figure)))
    spans = base.mark_rule(strokeWidth=2, color=INK).encode(x="low:Q", x2="high:Q")
    rings = (
        base.transform_filter("isValid(datum.published)")
        .mark_point(size=90, strokeWidth=2.5, color="#d9972f")
        .encode(x="published:Q")
    )
    drawn = (bars + spans + rings).properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5})
    return draw(
        drawn,
        rows,
        "bench",
        f"{_words(figure)} of every method" + ("; ring: published" if any(r["published"] is not None for r in rows) else ""),
    )
