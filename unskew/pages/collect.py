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
from unskew.pages.samples import BUDGET, SIDE, allowance, path_of, sample
from unskew.pages.verdict import judge_groups
from unskew.records import BiasRates, ClassRates, Evaluation, Groups, Run, TrainGroups
from unskew.training.finished import trained_method

FEW = 10  # an F1 over fewer rows with the label is marked
PICTURES = 12  # in a gallery, of each kind
FEW_PICTURES = 4  # where many runs share a page
CROWDED = 0.1  # share of a page for one run, from which on they do
KINDS = ("wrong", "right", "aligned")  # lists of a gallery
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


def collect(run: Run, found: Evaluation, share: float = 1.0) -> dict[str, Any]:
    """A run and its evaluation, as shown on the page and stored in its JSON. `share`: of the page's bytes for pictures."""
    cfg = run.config
    each = PICTURES if share > CROWDED else FEW_PICTURES
    most = allowance(6 * each, round(BUDGET * share))  # three kinds, with and without a map
    content = judged(found, each, most)
    shown = [s["index"] for kind in KINDS for s in content["gallery"][kind]]
    layer, maps = looks(run, found, shown, most)
    for kind in KINDS:
        content["gallery"][kind] = [{**s, "map": maps.get(s["index"], "")} for s in content["gallery"][kind]]
    return {
        **content,
        "method": cfg["config"]["method_name"],
        "weighted": cfg["weights"] is not None,
        "model": cfg["config"]["model_name"],
        "seed": cfg["config"]["seed"],
        "parameters": cfg["parameters"],
        "data": cfg["data"],
        "labels": cfg["labels"],
        "selection": run.outcome["selection"],
        "train_note": train_line(found.train),
        "masks": mask_pictures(run, found),
        "looks": {"layer": layer} if maps else {},
        "curves": [row for row in run.log() if row["kind"] in ("train", "val", "test")],
        "unreadable": run.outcome["unreadable"],
        "command": cfg["command"],
        "versions": cfg["versions"],
        "processes": cfg["processes"],
        "seconds": run.outcome["seconds"],
        "steps": run.outcome["steps"],
        "settings": cfg["config"],
        "card": registry.card("methods", cfg["config"]["method_name"]),
    }


def judged(found: Evaluation, each: int = PICTURES, most: int = 0) -> dict[str, Any]:
    """What a page shows of an evaluation, whether the model was trained here or elsewhere."""
    metrics = found.json()
    maps = [] if found.data.multi_label else [m for m in map(heat_map, found.by_bias.values() or [found.groups]) if m]
    return {
        "verdict": found.verdict.sentence + leakage_verdict(metrics.get("leakage")),
        "split": found.split,
        "aligned_rule": found.aligned_rule,
        "aligned_in_words": dict(found.aligned_in_words),
        "group_rows": group_rows(found),
        "rates": [rates_table(r) for r in found.rates_by_bias.values()],
        "metrics": metrics,
        "labels_table": label_table(found),
        "heat_maps": maps,
        "by_bias": {name: column_verdict(g, found.multi_label) for name, g in found.by_bias.items()},
        "gallery": gallery(found, each, most or allowance(3 * each)),
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


def gallery(found: Evaluation, each: int = PICTURES, most: int = 0) -> dict[str, Any]:
    """Conflicting samples that the model got wrong and right, and aligned ones; all samples if there is no bias.

    Of each kind the most confident ones first, spread over the classes; `most`: bytes of a picture.
    """
    data = found.data
    if len(data.shape) != 3 or data.multi_label:
        why = "inputs are not images" if len(data.shape) != 3 else "rows have several labels"
        return {"kind": "all", "reason": why, **{kind: [] for kind in KINDS}}
    parts = [part.column("logits") for part in found.predictions.parts("logits")]
    guess, sure = torch.cat([z.argmax(1) for z in parts]), torch.cat([z.softmax(1).amax(1) for z in parts])
    truth = data.y[found.rows]
    aligned, against = _kinds(found)
    kind = "conflicting" if data.bias_names and bool(against.any()) else "all"
    shown = against if kind == "conflicting" else ~aligned
    out: dict[str, Any] = {"kind": kind, "reason": ""}
    for name, mask in (("wrong", (guess != truth) & shown), ("right", (guess == truth) & shown), ("aligned", aligned)):
        places = mask.nonzero().flatten()
        places = places[sure[places].argsort(descending=True)]
        places = _spread(places, truth[places], each)
        pictures = thumbnails(data.inputs, found.rows[places], SIDE, most)
        out[name] = [
            _sample(found, k, float(sure[k]), int(guess[k]), words, address)
            for k, address in zip(places.tolist(), pictures, strict=True)
            for words in ["aligned" if aligned[k] else "conflicting" if against[k] else ""]
        ]
    return out


def _sample(found: Evaluation, place: int, sure: float, guess: int, kind: str, picture: str) -> dict[str, Any]:
    data, index = found.data, int(found.rows[place])
    label, said = data.classes[int(data.y[index])], data.classes[guess]
    shown = sample(
        index, label, picture, path=path_of(data, index), said=said, score=sure, scored="confidence", kind=kind,
        bias=_bias(data, index),
    )  # fmt: skip
    return {**shown, "class": label}


def _kinds(found: Evaluation) -> tuple[Tensor, Tensor]:
    """Which judged rows have a bias that points to their class, and which one that points away from it."""
    data: DataSet = found.data
    pairs = data.alignment()
    if pairs is None:
        nowhere = torch.zeros(len(found.rows), dtype=torch.bool)
        return nowhere, nowhere
    return pairs.of_rows(data.y[found.rows], data.bias[found.rows])


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
