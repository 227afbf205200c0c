"""The first screen of a bench's page: how far it is, how near the published numbers, what the best method gains and costs."""

from typing import Any

import polars as pl

from unskew.pages.charts import INK, NOTHING, Drawing, draw
from unskew.pages.first import BAD, DOUBT, GOOD, First, Number, Todo

NEAR = 3.0  # points from a published number
Block = dict[str, Any]  # of bench._blocks


def first_of(report: dict[str, Any], blocks: list[Block], failed: list[str], baseline: str) -> First:
    """The first screen of a bench."""
    compared = [abs(row["difference"]) for row in report["table"] if row["difference"] is not None]
    near = sum(d <= NEAR for d in compared)
    whole = report["done"] == report["runs"] and not failed
    best = _best(blocks[0]) if blocks else None
    sentence = f"{report['done']} of {report['runs']} runs are finished"
    sentence += f"; {near} of {len(compared)} figures are within {NEAR:g} points of the published ones." if compared else "."
    more = (
        [f"Best on {_place(blocks[0])}: {best['name']}, {best['figures'][0]['figure']} {best['figures'][0]['mean']:.1f}."]
        if best
        else []
    )
    numbers = [Number(value=f"{report['done']} of {report['runs']}", label="runs finished")]
    numbers += (
        [Number(value=f"{near} of {len(compared)}", label=f"figures within {NEAR:g} points of published ones")]
        if compared
        else []
    )
    gained, lost = _balance(blocks, baseline)
    if best and best["cost"] is not None:
        numbers.append(Number(value=f"{best['cost']:.2f}", label=f"times the cost of {baseline}", note=f"for {best['name']}"))
    command = (report["commands"] or ["unskew bench ..."])[-1]
    todo = [] if whole else [Todo(why="Run it again to finish: it resumes", command=command)]
    tone = BAD if failed else DOUBT if not whole or (compared and 2 * near < len(compared)) else GOOD
    return First(
        tone=tone, sentence=sentence, more=more, numbers=numbers, chart=blocks[0]["chart"] if blocks else NOTHING, todo=todo,
        gained=gained, lost=lost,
    )  # fmt: skip


def _place(block: Block) -> str:
    return " ".join(filter(None, (block["data"], block["at"])))


def _best(block: Block) -> dict[str, Any] | None:
    """The method with the highest first figure."""
    known = [m for m in block["methods"] if m["figures"] and m["figures"][0]["mean"] is not None]
    found: dict[str, Any] | None = max(known, key=lambda m: m["figures"][0]["mean"]) if known else None
    return found


def _balance(blocks: list[Block], baseline: str) -> tuple[list[str], list[str]]:
    """On each data set, what the best method gains over the baseline, and what it costs."""
    gained: list[str] = []
    lost: list[str] = []
    for block in blocks:
        best, base = _best(block), next((m for m in block["methods"] if m["name"] == baseline), None)
        if best is None or base is None or best is base or base["figures"][0]["mean"] is None:
            continue
        for ours, theirs in zip(best["figures"], base["figures"], strict=True):
            if ours["mean"] is None or theirs["mean"] is None:
                continue
            words = f"{_place(block)}: {best['name']} {ours['figure']} {theirs['mean']:.1f} to {ours['mean']:.1f}"
            (gained if ours["mean"] >= theirs["mean"] else lost).append(words)
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
    bars = base.mark_bar(height=14, color="#3f978a").encode(x=alt.X("mean:Q", title=figure.replace("_", " ")))
    spans = base.mark_rule(strokeWidth=2, color=INK).encode(x="low:Q", x2="high:Q")
    rings = (
        base.transform_filter("isValid(datum.published)")
        .mark_point(size=90, strokeWidth=2.5, color="#d9972f")
        .encode(x="published:Q")
    )
    drawn = (bars + spans + rings).properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5})
    return draw(drawn, rows, "bench", f"{figure.replace('_', ' ')} of every method; ring: published")
