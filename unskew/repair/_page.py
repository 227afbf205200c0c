"""The page of a repair: what was kept, what it did to the groups and to the bias, and the samples at both ends."""

from typing import Any

import torch
from markupsafe import Markup

from unskew.data._dataset import DataSet
from unskew.repair._base import Outcome
from unskew.report import charts
from unskew.report.html import environment, style
from unskew.report.pictures import thumbnails

PICTURES = 6  # of each end and class
CLASSES = 12
POINTS = 4000  # of the loss-entropy picture
MOST_VALUES = 40
SHORTCUT = 0.1  # a bias worth removing
LEAST_GAIN = 0.2  # of it that a repair should remove
LEAST_SHARE = 0.2  # of a class's share of the rows that should stay


def describe(data: DataSet, outcome: Outcome) -> dict[str, Any]:
    """The part of the JSON that the page shows and the command does not print."""
    return {"groups": composition(data, outcome), "gallery": gallery(data, outcome)}


def composition(data: DataSet, outcome: Outcome) -> dict[str, Any]:
    """Share of every (class, bias value) pair before and after, one table per bias column; of the classes if there is none."""
    weight = outcome.weight.double()
    plain = torch.ones_like(weight)
    classes = list(data.classes)
    if data.multi_label:
        member = data.y[outcome.index].double()  # (n, L)
    else:
        member = torch.nn.functional.one_hot(data.y[outcome.index], len(classes)).double()
    tables = []
    for name, values, column in zip(data.bias_names, data.bias_values, data.bias[outcome.index].unbind(1), strict=True):
        if len(values) > MOST_VALUES:
            continue
        known = column >= 0
        code = torch.nn.functional.one_hot(column.clamp(min=0), len(values)).double() * known[:, None]
        shares = [_rows_to_one(member.T @ (w[:, None] * code)) for w in (plain, weight)]
        tables.append({"bias": name, "columns": list(values), "before": shares[0].tolist(), "after": shares[1].tolist()})
    totals = [(w @ member / w.sum()).tolist() for w in (plain, weight)]
    return {"classes": classes, "before": totals[0], "after": totals[1], "by_bias": tables}


def _rows_to_one(table: torch.Tensor) -> torch.Tensor:
    return table / table.sum(1, keepdim=True).clamp(min=1e-12)


def gallery(data: DataSet, outcome: Outcome) -> dict[str, Any]:
    """The samples with the highest and the lowest score of each class."""
    if len(data.shape) != 3 or data.multi_label:
        return {"reason": "inputs are no images" if len(data.shape) != 3 else "rows have several labels", "classes": []}
    shown = []
    y = data.y[outcome.index]
    for c in torch.unique(y).tolist()[:CLASSES]:
        places = (y == c).nonzero().flatten()
        order = outcome.index[places[outcome.score[places].argsort(descending=True, stable=True)]]
        ends = {"high": order[:PICTURES], "low": order[-PICTURES:].flip(0)}
        shown.append({"class": data.classes[c], **{name: thumbnails(data, rows) for name, rows in ends.items()}})
    return {"reason": "", "classes": shown}


def render(found: dict[str, Any], data: DataSet, outcome: Outcome) -> str:
    return environment("unskew.repair").get_template("repair.html").render(
        found=found,
        style=style(),
        histogram=Markup(histogram(outcome.score)),
        plane=Markup(plane(outcome)),
    )  # fmt: skip


def verdict(found: dict[str, Any]) -> str:
    """The repair in one sentence."""
    first = found["representations"][0]
    before, after = first["before"]["bias"], first["after"]["bias"]
    rows = f"{found['kept']} of {found['rows']} rows kept"
    if before is None or after is None:
        why = first["before"].get("reason") or first["after"].get("reason")
        return f"{rows}; the bias of {first['name']} could not be measured: {why}."
    shares = [f"{100 * max(value, 0):.0f} %" for value in (before, after)]
    told = f"{rows}; {shares[0]} of the label could be read from {first['name']} before, {shares[1]} after."
    if before >= SHORTCUT and after > (1 - LEAST_GAIN) * before:
        told += " That is hardly less: this repair does not remove the shortcut."
    return told + "".join(f" {sentence}" for sentence in _lost(found["groups"]))


def _lost(groups: dict[str, Any]) -> list[str]:
    """Classes that the repair all but removes."""
    shares = zip(groups["classes"], groups["before"], groups["after"], strict=True)
    lost = [name for name, before, after in shares if before > 0 and after < LEAST_SHARE * before]
    if not lost:
        return []
    named = ", ".join(lost[:5]) + (" and others" if len(lost) > 5 else "")
    return [f"Little is left of {'class' if len(lost) == 1 else 'classes'} {named}: under a fifth of the share before."]


def histogram(score: torch.Tensor) -> str:
    import altair as alt

    values = score[torch.isfinite(score)].double()
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return ""
    bins = 40
    counts = torch.histc(values.float(), bins, low, high)
    width = (high - low) / bins
    rows = [{"from": low + k * width, "to": low + (k + 1) * width, "rows": int(n)} for k, n in enumerate(counts.tolist())]
    chart = (
        alt.Chart(alt.Data(values=rows), width=420, height=180)
        .mark_bar(color="#62b2a5")
        .encode(x=alt.X("from:Q", title="score", bin="binned"), x2="to:Q", y=alt.Y("rows:Q", scale=alt.Scale(type="symlog")))
    )
    return charts.svg(chart)


def plane(outcome: Outcome) -> str:
    """Loss against entropy with the line that divides them, for a repair that has both."""
    if "entropy" not in outcome.figures or outcome.noisy is None:
        return ""
    import altair as alt

    entropy, loss = outcome.figures["entropy"], outcome.figures["loss"]
    pick = torch.randperm(len(loss), generator=torch.Generator().manual_seed(0))[:POINTS]
    rows = [
        {"entropy": float(entropy[i]), "loss": float(loss[i]), "label": "noisy" if bool(outcome.noisy[i]) else "clean"}
        for i in pick.tolist()
    ]
    top = float(entropy.max())
    line = [{"entropy": 0.0, "loss": 0.0}, {"entropy": top, "loss": outcome.figures["delta"] * top}]
    points = (
        alt.Chart(alt.Data(values=rows), width=420, height=240)
        .mark_circle(size=14, opacity=0.5)
        .encode(
            x=alt.X("entropy:Q", title="entropy of the prediction"),
            y=alt.Y("loss:Q", title="cross-entropy"),
            color=alt.Color("label:N", title=None, scale=alt.Scale(domain=["clean", "noisy"], range=["#62b2a5", "#de6e56"])),
        )
    )
    return charts.svg(points + alt.Chart(alt.Data(values=line)).mark_line(color="#1d2730").encode(x="entropy:Q", y="loss:Q"))
