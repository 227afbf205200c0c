"""What a run relies on: lines for a terminal, and the plane of readable against used."""

from collections.abc import Mapping
from typing import Any

from unskew.measure.reliance import NAMES
from unskew.pages import charts
from unskew.pages.verdict import percent

# Which representations of an audit read what a change takes away; what has none is not in the plane.
READ_BY = {
    "grey": ("color",), "border": ("crop:where=border",), "centre": ("crop:where=center",), "detail": ("texture", "spectrum"),
    "arrangement": ("low_resolution",), "motion": ("frame",),
}  # fmt: skip


def reliance_lines(metrics: Mapping[str, Any]) -> list[str]:
    """A line for each thing that was taken away, the most used first; nothing if that was not asked."""
    if "reliance" not in metrics:
        return []
    found = metrics["reliance"]
    head = f"  {'taken away':24} {'used':>8}  {'95 % interval':18} {'same without':>12} {'after noise':>12} {'accuracy':>9}"
    lines = ["", f"reliance, {found['rows']} rows: {found['sentence']}", head]
    for name, r in found["kinds"].items():
        used = r["used"]
        lines.append(
            f"  {NAMES[name]:24} {percent(used['value']):>8}  {percent(used['low']) + ' to ' + percent(used['high']):18} "
            f"{percent(r['agreement']['value']):>12} {percent(r['control']['value']):>12} {percent(r['accuracy']['value']):>9}"
        )
    return lines


def used_points(runs: list[dict[str, Any]], audit: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Every run and thing taken away that the audit can read, as points (readable, used)."""
    points = []
    for run in runs if audit else []:
        for name, r in run["metrics"].get("reliance", {}).get("kinds", {}).items():
            mine = (
                [f["bias"] for f in audit["representations"] if f["name"].startswith(READ_BY.get(name, ("\0",)))] if audit else []
            )
            if mine:
                used = r["used"]
                points.append(
                    {
                        "run": run["name"],
                        "name": NAMES[name],
                        "readable": max(0.0, *mine),
                        "used": used["value"],
                        "low": used["low"],
                        "high": used["high"],
                    }
                )
    return points


def used_plane(points: list[dict[str, Any]]) -> charts.Drawing:
    """Readable across, used up, with intervals and names."""
    import altair as alt

    if not points:
        return charts.NOTHING
    x = alt.X("readable:Q", title="readable share of the label", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    y = alt.Y("used:Q", title="used by the model", axis=alt.Axis(format="%"))
    colour = alt.Color("run:N", title=None, legend=alt.Legend(orient="top", labelLimit=400))
    base = alt.Chart(alt.Data(values=points), width=460, height=280)
    bars = base.mark_rule(opacity=0.5).encode(x=x, y=alt.Y("low:Q", title="used by the model"), y2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=70).encode(x=x, y=y, color=colour)
    words = base.mark_text(align="left", dx=8, fontSize=12, color=charts.INK).encode(x=x, y=y, text="name:N")
    zero = alt.Chart(alt.Data(values=[{"y": 0}])).mark_rule(color="#9aa5b1").encode(y="y:Q")
    chart = (zero + bars + dots + words).properties(padding={"left": 10, "right": 140, "top": 5, "bottom": 5})
    return charts.draw(chart, points, "readable-and-used", "readable share of the label against use by the model")
