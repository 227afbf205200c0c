"""Charts drawn by Vega-Altair and rendered to SVG, so that the page needs no script and no network; each with its data as CSV."""

import base64
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from unskew.core import plots
from unskew.data.export import csv_text

INK = "currentColor"  # follows the page, light or dark
_CONFIG = {
    "font": "system-ui, sans-serif",
    "background": "transparent",
    "aria": False,  # the page names every chart, and has its data as a table
    "axis": {
        "labelFontSize": 12, "titleFontSize": 12, "labelColor": INK, "titleColor": INK, "gridColor": INK, "gridOpacity": 0.14,
        "domainColor": INK, "domainOpacity": 0.5, "tickColor": INK, "tickOpacity": 0.5,
    },
    "view": {"stroke": None},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "labelColor": INK, "titleColor": INK},
}  # fmt: skip
_ALONE = {
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "gridColor": "#e4e7eb"},
    "view": {"stroke": None},
    "legend": {"labelFontSize": 12, "titleFontSize": 12},
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart and what it shows; false if there is nothing to show."""

    svg: Markup
    rows: Sequence[dict[str, Any]] = ()
    name: str = "chart"  # of the CSV file
    title: str = ""

    def __bool__(self) -> bool:
        return bool(self.svg)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(key for row in self.rows for key in row))

    @property
    def csv(self) -> str:
        """The rows as a data: address."""
        text = csv_text(pl.DataFrame(list(self.rows), infer_schema_length=None))
        return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


NOTHING = Drawing(Markup(""))


def draw(chart: Any, rows: Sequence[dict[str, Any]], name: str, title: str = "") -> Drawing:
    """The chart as SVG in the colours of the page, with its data."""
    # The page says what a chart shows; roles of single marks, without a name, would only be in a reader's way.
    silent = re.sub(r"<[a-z]+ [^<>]*>", lambda tag: re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", tag[0]), svg(chart, **_CONFIG))
    return Drawing(Markup(silent), rows, name, title)


def svg(chart: Any, **config: Any) -> str:
    """The chart as SVG that stands alone: by default in black on white."""
    import vl_convert

    spec = chart.configure(**(config or _ALONE)).to_dict()
    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def curves(runs: list[dict[str, Any]], kind: str) -> Drawing:
    """Learning curves of all runs: the loss terms of training, or the accuracy on the validation split."""
    rows = []
    for run in runs:
        for row in run["curves"]:
            if (row["kind"] == "train") != (kind == "train"):
                continue
            for name, value in row.items():
                if name in ("step", "kind", "lr") or value is None:
                    continue
                label = name if kind == "train" else f"{row['kind']} {name}"
                series = label if len(runs) == 1 else f"{run['name']}: {label}"
                rows.append({"x": row["step"], "y": value, "series": series})
    if len({r["x"] for r in rows}) < 2:
        return NOTHING
    title = "loss" if kind == "train" else "accuracy"
    # Browsers set text wider than the renderer expects: give long names a line each, and short ones room.
    columns = 1 if max(len(r["series"]) for r in rows) > 24 else 2
    shown = [{"step": r["x"], "value": r["y"], "series": r["series"]} for r in rows]
    return draw(plots.lines(rows, "step", title, columns=columns), shown, f"curves-{kind}", f"{title} by step")


def plane_points(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every judged run, and its randomised copies, as points (F1, amplification) of the first bias column."""
    points = []
    for run in runs:
        leak = run["metrics"].get("leakage")
        if not leak:
            continue
        for level, leakage in [(0.0, leak), *((r["noise"], r) for r in leak.get("randomisation", []))]:
            low, high = leakage["intervals"]["amplification"]
            points.append(
                {
                    "run": run["name"],
                    "noise": level,
                    "f1": leakage["f1"],
                    "delta": leakage["amplification"],
                    "low": low,
                    "high": high,
                }
            )
    return points


def plane(points: list[dict[str, Any]]) -> Drawing:
    """F1 across, amplification up; runs as points with intervals, noise levels of a run joined by a line."""
    import altair as alt

    if not points:
        return NOTHING
    x = alt.X("f1:Q", title="macro F1", scale=alt.Scale(zero=False), axis=alt.Axis(format=".2f"))
    colour = alt.Color("run:N", title=None, legend=alt.Legend(orient="right", labelLimit=400))
    base = alt.Chart(alt.Data(values=points), width=460, height=280)
    title = alt.Y("delta:Q", title="amplification", axis=alt.Axis(format=".2f"))
    bars = base.mark_rule(opacity=0.5).encode(x=x, y=alt.Y("low:Q", title="amplification"), y2="high:Q", color=colour)
    line = base.mark_line(strokeDash=[4, 3], opacity=0.7).encode(x=x, y=title, color=colour, order="noise:Q")
    dots = base.mark_point(filled=True, size=70).encode(
        x=x, y=title, color=colour, shape=alt.condition("datum.noise > 0", alt.value("diamond"), alt.value("circle"))
    )
    zero = alt.Chart(alt.Data(values=[{"y": 0}])).mark_rule(color="#9aa5b1").encode(y="y:Q")
    return draw(zero + bars + line + dots, points, "amplification", "macro F1 against amplification")


def ranking(representations: list[dict[str, Any]]) -> Drawing:
    """Bias of every representation with its interval, coloured by verdict."""
    rows = [
        {
            "name": r.get("label") or r["name"],
            "value": max(r["bias"], 0),
            "low": max(r["low"] or 0, 0),
            "high": max(r["high"] or 0, 0),
            "verdict": r["verdict"],
        }
        for r in representations
    ]
    if not rows:
        return NOTHING
    title = "share of the label that can be read"
    chart = plots.bars(rows, title, kind="verdict", colours=plots.COLOURS, ink=INK)
    # Browsers set text wider than the renderer expects: leave room for names.
    chart = chart.properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5})
    return draw(
        chart, [{("bias" if k == "value" else k): v for k, v in row.items()} for row in rows], "what-gives-the-label-away", title
    )


def gain(runs: list[dict[str, Any]], least: int = 2) -> Drawing:
    """Aligned and conflicting accuracy of several runs side by side, with intervals; nothing for fewer than `least` runs."""
    import altair as alt

    rows = []
    for run in runs:
        for name in ("aligned", "conflicting"):
            value, interval = run["metrics"].get(name), run["metrics"]["intervals"].get(name)
            if value is None or math.isnan(value) or interval is None or None in interval:
                return NOTHING
            rows.append({"run": run["name"], "rows": name, "accuracy": value, "low": interval[0], "high": interval[1]})
    if len(runs) < least:
        return NOTHING
    names = [run["name"] for run in runs]
    base = alt.Chart(alt.Data(values=rows), width=420).encode(
        y=alt.Y("run:N", sort=names, title=None, axis=alt.Axis(labelLimit=220)), yOffset=alt.YOffset("rows:N")
    )
    bars = base.mark_bar().encode(
        x=alt.X("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=alt.Color(
            "rows:N",
            title=None,
            legend=alt.Legend(orient="top"),
            scale=alt.Scale(domain=["aligned", "conflicting"], range=["#9aa5b1", "#4a6fa5"]),
        ),
    )
    spans = base.mark_rule(strokeWidth=2, color=INK).encode(x="low:Q", x2="high:Q")
    chart = (bars + spans).properties(padding={"left": 40, "right": 10, "top": 5, "bottom": 5})
    return draw(chart, rows, "gain", "accuracy of aligned and conflicting rows")


def reliability(calibration: dict[str, Any], most: int = 6) -> Drawing:
    """Share that is right against confidence, a line per bias value of at least 30 rows; empty with more than `most` of them."""
    import altair as alt

    shown = {value: c for value, c in calibration.items() if not c["small"]}
    if not 0 < len(shown) <= most:
        return NOTHING
    rows = [
        {"value": value, "confidence": b["confidence"], "right": b["accuracy"], "n": b["n"]}
        for value, c in shown.items()
        for b in c["bins"]
    ]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("confidence:Q", title="confidence", scale=scale, axis=alt.Axis(format="%"))
    y = alt.Y("right:Q", title="share that is right", scale=scale, axis=alt.Axis(format="%"))
    legend = alt.Legend(orient="top", columns=2, columnPadding=40, labelLimit=400)
    base = alt.Chart(alt.Data(values=rows), width=260, height=260).encode(
        x=x, y=y, color=alt.Color("value:N", title=None, legend=legend)
    )
    ends = alt.Data(values=[{"confidence": 0, "right": 0}, {"confidence": 1, "right": 1}])
    diagonal = alt.Chart(ends).mark_line(color="#9aa5b1", strokeDash=[4, 3]).encode(x=x, y=y)
    points = base.mark_point(filled=True).encode(size=alt.Size("n:Q", legend=None, scale=alt.Scale(range=[20, 160])))
    return draw(diagonal + base.mark_line() + points, rows, "reliability", "share that is right against confidence")
