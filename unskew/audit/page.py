"""The audit's page: the same style and rules as the report's."""

from typing import Any

from markupsafe import Markup

from unskew.report import charts
from unskew.report.html import environment, style

MOST_CLASSES = 40  # columns of the heat map


def render_audit(found: dict[str, Any]) -> str:
    top = found["representations"][:12]
    return environment("unskew.audit").get_template("audit.html").render(
        found=found,
        style=style(),
        classes=list(top[0]["per_class"])[:MOST_CLASSES] if top else [],
        top=top,
        chart=Markup(ranking(found["representations"])),
    )  # fmt: skip


def ranking(representations: list[dict[str, Any]]) -> str:
    """Bias of every representation with its interval; the mark at chance level."""
    import altair as alt

    rows = [
        {
            "name": r["name"],
            "bias": max(r["bias"], 0),
            "low": max(r["low"] or 0, 0),
            "high": max(r["high"] or 0, 0),
            "verdict": r["verdict"],
        }
        for r in representations
    ]
    names = [r["name"] for r in rows]
    base = alt.Chart(alt.Data(values=rows), width=420).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=220))
    )
    bars = base.mark_bar(height=14).encode(
        x=alt.X("bias:Q", title="share of the label that can be read", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=alt.Color(
            "verdict:N",
            title=None,
            legend=alt.Legend(orient="top"),
            scale=alt.Scale(
                domain=["clean", "trace", "weak", "shortcut", "strong", "readable"],
                range=["#c5ccd3", "#e8d9b0", "#e9b872", "#de6e56", "#a63d2f", "#62b2a5"],
            ),
        ),
    )
    spans = base.mark_rule(strokeWidth=2, color="#1d2730").encode(x="low:Q", x2="high:Q")
    # Browsers set names wider than the renderer expects: leave them room.
    return charts.svg((bars + spans).properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5}))
