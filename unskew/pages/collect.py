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
from unskew.pages.verdict import judge_groups
from unskew.records import BiasRates, ClassRates, Evaluation, Groups, Run, TrainGroups
from unskew.training.finished import trained_method

FEW = 10  # an F1 over fewer rows with the label is marked
PICTURES = 12  # in a gallery, of each kind
MOST_RATES = 20  # classes in a table of error rates; the JSON has all
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
        "verdict": found.verdict.sentence + leakage_verdict(metrics.get("leakage")),
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
        "aligned_in_words": dict(found.aligned_in_words),
        "train_note": train_line(found.train),
        "group_rows": group_rows(found),
        "rates": [rates_table(r) for r in found.rates_by_bias.values()],
        "metrics": metrics,
        "labels_table": label_table(found),
        "masks": mask_pictures(run, found),
        "looks": looks(run, found),
        "heat_maps": [] if found.data.multi_label else [m for m in map(heat_map, found.by_bias.values() or [found.groups]) if m],
        "by_bias": {name: column_verdict(g, found.multi_label) for name, g in found.by_bias.items()},
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


def train_line(train: TrainGroups) -> str:
    """Which training rows the column `train` is about, or why there is none."""
    if train.groups is None:
        return f"train: not judged ({train.reason})"
    sample = f"a random sample of {train.rows} of the {train.of} rows" if train.rows < train.of else f"all {train.of} rows"
    return f"train: {sample} it was trained on{'; ' + train.note if train.note else ''}"


def group_rows(found: Evaluation) -> list[dict[str, Any]]:
    """The groups, lowest accuracy first, each with the accuracy and n of its training rows if they were judged."""
    groups, train = found.groups.json()["groups"], found.train.groups
    comparable = train is not None and train.bias_names == found.groups.bias_names
    seen = {(c.y, c.bias): c for c in train.cells} if train is not None and comparable else {}
    for row, cell in zip(groups, found.groups.cells, strict=True):
        same = seen.get((cell.y, cell.bias))
        row |= {"train": None if same is None else same.accuracy, "train_n": 0 if same is None else same.n}
    return sorted(groups, key=lambda row: row["accuracy"])


def rates_table(rates: BiasRates) -> dict[str, Any]:
    """Error rates by the values of a bias column as the page shows them: the classes with the largest gaps first."""

    def widest(c: ClassRates) -> float:
        gaps = [g.estimate.value for g in (c.true_positive_gap, c.false_positive_gap) if not g.estimate.reason]
        return max(gaps, default=-1.0)

    ordered = sorted(rates.classes.items(), key=lambda item: -widest(item[1]))
    content = rates.json()
    shown = {"classes": [{"class": name, **content["classes"][name]} for name, _ in ordered[:MOST_RATES]]}
    return content | shown | {"bias": rates.bias, "left_out": max(0, len(ordered) - MOST_RATES)}


def column_verdict(groups: Groups, multi_label: bool) -> str:
    """The sentence for one bias column of several; what does not depend on the column stands in the run's own verdict."""
    return judge_groups(groups, multi_label=multi_label).sentence


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
    pairs = data.alignment()
    if pairs is None:
        return torch.zeros(len(found.rows), dtype=torch.bool)
    return pairs.of_rows(data.y[found.rows], data.bias[found.rows])[1]


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
