"""What a page says about a run, as plain data: the JSON file holds it, the HTML shows it."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unskew.core import registry
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.data.pictures import picture, thumbnails
from unskew.pages.attention import looks
from unskew.records import Estimate, Evaluation, Groups, Run
from unskew.training.finished import trained_method

FEW = 10  # an F1 over fewer rows with the label is marked
PICTURES = 12  # in a gallery, of each kind
MOST_COLUMNS = 40  # of a heat map
OF_SETS = ("plain", "group_mean", "worst_group")  # averages of a multi-label task; the others need one class per row


def short_names(runs: Sequence[Run]) -> list[str]:
    """The shortest path endings that tell the runs apart."""
    parts = [run.path.absolute().parts for run in runs]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({k + 1})" for k, name in enumerate(names)]  # the same run given twice


def collect(run: Run, found: Evaluation) -> dict[str, Any]:
    """A run and its evaluation, as shown on the page and stored in its JSON."""
    cfg, metrics = run.config, found.json()
    return {
        "verdict": verdict(found.groups, found.data.multi_label) + leakage_verdict(metrics.get("leakage")),
        "method": cfg["config"]["method_name"],
        "weighted": cfg["weights"] is not None,
        "model": cfg["config"]["model_name"],
        "seed": cfg["config"]["seed"],
        "parameters": cfg["parameters"],
        "data": cfg["data"],
        "labels": cfg["labels"],
        "selection": run.outcome["selection"],
        "split": found.split,
        "aligned_rule": found.aligned_rule,
        "metrics": metrics,
        "labels_table": label_table(found),
        "masks": mask_pictures(run, found),
        "looks": looks(run, found),
        "heat_maps": [] if found.data.multi_label else [m for m in map(heat_map, found.by_bias.values() or [found.groups]) if m],
        "by_bias": {name: verdict(g, found.data.multi_label) for name, g in found.by_bias.items()},
        "curves": [row for row in run.log() if row["kind"] in ("train", "val", "test")],
        "gallery": gallery(found),
        "unreadable": run.outcome["unreadable"],
        "command": cfg["command"],
        "versions": cfg["versions"],
        "processes": cfg["processes"],
        "seconds": run.outcome["seconds"],
        "steps": run.outcome["steps"],
        "settings": cfg["config"],
        "card": registry.card("methods", cfg["config"]["method_name"]),
    }


def leakage_verdict(leak: dict[str, Any] | None) -> str:
    """What attackers found, as a sentence that follows the verdict."""
    if not leak:
        return ""
    low, high = leak["intervals"]["amplification"]
    name = leak.get("bias", "the bias")
    points, interval = f"{100 * leak['amplification']:.1f} points", f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
    if low > 0:
        return f" It amplifies {name}: its logits leak {points} more than labels that are wrong as often ({interval})."
    if high < 0:
        return f" It leaks less of {name} than labels that are wrong as often: amplification {points} ({interval})."
    return f" No sign that it amplifies {name}: amplification {points} ({interval})."


def leakage_notes(leak: dict[str, Any]) -> list[str]:
    """How one column's leakage was measured, where that matters."""
    notes = [leak["note"]] if leak.get("note") else []
    if leak.get("protocol") == "code":
        notes.append("accuracies folded about one half, as the released code does")
    if leak.get("fit_on") == "train":
        notes.append("attackers fitted on the model's training rows")
    if leak.get("alpha"):
        notes.append(
            f"attacked on {leak['rows']} rows; no label has one bias value over {leak['reached']:.3g} times as often as another"
        )
    return notes


def label_table(found: Evaluation) -> list[dict[str, Any]]:
    """Labels of a multi-label task, those whose F1 differs most between the values of a bias first."""
    rows = []
    for row in found.label_figures.per_label if found.label_figures is not None else []:
        # Cells of a few rows differ by chance: they are shown, but do not affect the order.
        known = [[c["f1"] for c in cells.values() if c["n"] >= FEW] for cells in row.get("by_bias", {}).values()]
        rows.append({**row, "gap": max((max(f) - min(f) for f in known if len(f) > 1), default=math.nan)})
    return sorted(rows, key=lambda r: (math.isnan(r["gap"]), -r["gap"] if not math.isnan(r["gap"]) else 0.0))


def mask_pictures(run: Run, found: Evaluation) -> dict[str, Any]:
    """Some samples before and after a mask at the image, and the mean of the mask."""
    if run.config["config"]["method"].get("at") != "image":
        return {}
    method, data = trained_method(run), found.data
    mask = getattr(method, "mask", None)
    if mask is None:
        return {}
    rows = found.rows[torch.linspace(0, len(found.rows) - 1, min(PICTURES, len(found.rows))).long()]
    open_share: list[Tensor] = []
    dtype = next(mask.parameters()).dtype
    with torch.inference_mode():
        for _, x in rows_in_order(data, found.rows[:2000], 256, dtype=dtype):
            open_share.append(mask(x).mean((1, 2, 3)))
        index, x = next(rows_in_order(data, rows, len(rows), dtype=dtype))
        m = mask(x)
        low, high = x.amin((1, 2, 3), keepdim=True), x.amax((1, 2, 3), keepdim=True)

        def bytes_of(v: Tensor) -> Tensor:
            return ((v - low) / (high - low).clamp(min=1e-9) * 255).clamp(0, 255).round().to(torch.uint8)

        shown = [(bytes_of(x), "before"), ((m * 255).round().to(torch.uint8), "mask"), (bytes_of(m * x), "after")]
    pictures = [{name: picture(p[k]) for p, name in shown} for k in range(len(index))]
    return {"open": float(torch.cat(open_share).mean()), "rows": len(torch.cat(open_share)), "pictures": pictures}


def percent(value: float, digits: int = 1) -> str:
    return "undefined" if value is None or math.isnan(value) else f"{100 * value:.{digits}f} %"


def verdict(groups: Groups, multi_label: bool = False) -> str:
    """One sentence: does the model take the shortcut, and by how much?"""
    right = f"{percent(groups.plain.value)} of the {'labels' if multi_label else 'rows'} are right"
    names = " and ".join(groups.bias_names)
    if multi_label:
        span = ", ".join(f"{percent(c.accuracy)} for {_values(groups, c.bias)}" for c in groups.cells[:6]) if names else ""
        span += f" and {len(groups.cells) - 6} more groups" if names and len(groups.cells) > 6 else ""
        return f"Rows have several labels: {right}{': ' + span if span else ''}."
    if not names:
        worst = min(groups.cells, key=lambda c: c.accuracy)
        weakest = f"{percent(worst.accuracy)} in the weakest class, {groups.classes[worst.y]}"
        return f"No bias column was given, so only classes can be compared: {right}, {weakest}."
    a, c = groups.aligned, groups.conflicting
    if math.isnan(a.value) or math.isnan(c.value):
        return f"Whether the model leans on {names} cannot be told from this split ({a.reason or c.reason}); {right}."
    gap, low, high = difference(a, c)
    figures = (
        f"{percent(a.value)} right where {names} agrees with the class, {percent(c.value)} where it does not "
        f"(difference {100 * gap:.1f} points, 95 % interval {100 * low:.1f} to {100 * high:.1f})."
    )
    if low > 0.05:
        return f"The model takes the shortcut: {figures}"
    if low > 0:
        return f"The model leans a little on {names}: {figures}"
    if high < 0:
        return f"The model is worse where {names} agrees with the class: {figures}"
    if high < 0.05:
        return f"No sign of the shortcut: {figures}"
    return f"Too few rows to tell whether the model takes the shortcut: {figures}"


def _values(groups: Groups, codes: Sequence[int]) -> str:
    return " × ".join(v[c] for v, c in zip(groups.bias_values, codes, strict=True))


def difference(a: Estimate, b: Estimate) -> tuple[float, float, float]:
    r"""a - b with Newcombe's interval, from the two Wilson intervals.

    .. math::  \hat a - \hat b \ \mp\ \sqrt{(\hat a - l_a)^2 + (u_b - \hat b)^2}\ ,\quad \sqrt{(u_a - \hat a)^2 + (\hat b - l_b)^2}
    """
    gap = a.value - b.value
    low = gap - math.hypot(a.value - a.low, b.high - b.value)
    high = gap + math.hypot(a.high - a.value, b.value - b.low)
    return gap, low, high


def heat_map(groups: Groups) -> dict[str, Any] | None:
    """Accuracy and n for every class (row) and bias value (column); only with one bias column."""
    if len(groups.bias_names) != 1 or len(groups.bias_values[0]) > MOST_COLUMNS:
        return None
    return {
        "bias": groups.bias_names[0],
        "columns": list(groups.bias_values[0]),
        "rows": list(groups.classes),
        "accuracy": groups.matrix("accuracy").tolist(),
        "n": groups.matrix("n").long().tolist(),
        "aligned": [[c.y, c.bias[0]] for c in groups.cells if c.aligned],
    }


def gallery(found: Evaluation) -> dict[str, Any]:
    """Conflicting samples that the model got wrong and right; all samples if there is no bias."""
    data = found.data
    if len(data.shape) != 3:
        return {"reason": "inputs are not images", "wrong": [], "right": []}
    if data.multi_label:
        return {"reason": "rows have several labels", "wrong": [], "right": []}
    logits = found.predictions.column("logits")
    guess = logits.argmax(1)
    truth = data.y[found.rows]
    shown = conflicting(found)
    kind = "conflicting" if data.bias_names and bool(shown.any()) else "all"
    shown = shown if kind == "conflicting" else torch.ones_like(shown)
    sure = logits.softmax(1).amax(1)
    out: dict[str, Any] = {"kind": kind, "reason": ""}
    for name, mask in (("wrong", guess != truth), ("right", guess == truth)):
        places = (mask & shown).nonzero().flatten()
        places = places[sure[places].argsort(descending=True)]  # the most confident ones first
        places = _spread(places, truth[places], PICTURES)
        rows = found.rows[places]
        out[name] = [
            {
                "index": int(i),
                "class": data.classes[int(t)],
                "said": data.classes[int(g)],
                "bias": _bias(data, int(i)),
                "picture": p,
            }
            for i, t, g, p in zip(rows, truth[places], guess[places], thumbnails(data.inputs, rows), strict=True)
        ]
    return out


def conflicting(found: Evaluation) -> Tensor:
    """Which judged rows have a bias that points away from their class."""
    data: DataSet = found.data
    aligned, _ = data.aligned()
    if aligned is None:
        return torch.zeros(len(found.rows), dtype=torch.bool)
    bias, y = data.bias[found.rows], data.y[found.rows]
    known = (bias >= 0).all(1)
    agrees = torch.stack([m[y, b.clamp(min=0)] for m, b in zip(aligned, bias.unbind(1), strict=True)]).all(0)
    return known & ~agrees


def _spread(places: Tensor, classes: Tensor, most: int) -> Tensor:
    """The first of every class, then the second of every class, and so on: no class fills a gallery alone."""
    seen: dict[int, int] = {}
    rank = []
    for c in classes.tolist():
        rank.append(seen.get(c, 0))
        seen[c] = seen.get(c, 0) + 1
    order = torch.tensor(rank, dtype=torch.long).argsort(stable=True)
    return places[order[:most]]


def _bias(data: DataSet, index: int) -> str:
    codes = data.bias[index].tolist()
    return ", ".join(
        f"{name} {values[c] if c >= 0 else 'missing'}"
        for name, values, c in zip(data.bias_names, data.bias_values, codes, strict=True)
    )
