"""Vega-Altair charts of plain rows, for notebooks and pages: bars with intervals, and lines."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
WIDTH = 420
COLOURS = {  # of what an audit calls its findings
    "shortcut": "#c0483a", "question": "#d9972f", "readable": "#3f978a", "trace": "#b9a36a", "clean": "#9aa5b1",
}  # fmt: skip


def bars(rows: Sequence[Row], title: str, *, kind: str = "", colours: Mapping[str, str] | None = None, ink: str = "#222") -> Any:
    """A horizontal bar for each row (name, value, and low and high where known), all shares, coloured by the column `kind`."""
    import altair as alt

    base = alt.Chart(alt.Data(values=list(rows)), width=WIDTH).encode(
        y=alt.Y("name:N", sort=[r["name"] for r in rows], title=None, axis=alt.Axis(labelLimit=220))
    )
    drawn = base.mark_bar(height=14).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    )
    if kind:
        scale = alt.Scale(domain=list(colours), range=list(colours.values())) if colours else alt.Undefined
        drawn = drawn.encode(color=alt.Color(f"{kind}:N", title=None, legend=alt.Legend(orient="top"), scale=scale))
    spans = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, color=ink).encode(x="low:Q", x2="high:Q")
    return drawn + spans


def lines(rows: Sequence[Row], x: str, y: str, *, columns: int = 2) -> Any:
    """A line for each value of the column `series`; x and y are the titles of the columns `x` and `y`."""
    import altair as alt

    legend = alt.Legend(orient="top", columns=columns, columnPadding=40, labelLimit=400)
    return (
        alt.Chart(alt.Data(values=list(rows)), width=WIDTH, height=200)
        .mark_line(point=len(rows) < 60)
        .encode(
            x=alt.X("x:Q", title=x, scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False)),
            color=alt.Color("series:N", title=None, legend=legend),
        )
    )
