"""Charts drawn by Vega-Altair and rendered to SVG here and now: the page needs no script and no network."""

from typing import Any

_CONFIG = {
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "gridColor": "#e4e7eb"},
    "view": {"stroke": None},
    "legend": {"labelFontSize": 12, "titleFontSize": 12},
}


def svg(chart: Any) -> str:
    import vl_convert

    spec = chart.configure(**_CONFIG).to_dict()
    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def curves(runs: list[dict[str, Any]], kind: str) -> str:
    """Learning curves of all runs: the loss terms of training, or the accuracy on the validation split."""
    import altair as alt

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
                rows.append({"step": row["step"], "value": value, "series": series})
    if len({r["step"] for r in rows}) < 2:
        return ""
    title = "loss" if kind == "train" else "accuracy"
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
    chart = (
        alt.Chart(alt.Data(values=rows), width=420, height=200)
        .mark_line(point=len(rows) < 60)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=y,
            color=alt.Color("series:N", title=None, legend=alt.Legend(orient="top", columns=2)),
        )
    )
    return svg(chart)
