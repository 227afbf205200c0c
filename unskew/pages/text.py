"""Results as text for a terminal."""

import math
from collections.abc import Mapping
from typing import Any

from unskew.pages.collect import OF_SETS, column_verdict, leakage_notes, train_line
from unskew.pages.html import MEANING
from unskew.pages.reliance import reliance_lines
from unskew.pages.slices import slices_lines
from unskew.pages.verdict import percent
from unskew.records import (
    AVERAGES,
    SMALL_GROUP,
    Audit,
    BiasRates,
    Dependency,
    Estimate,
    Evaluation,
    Gap,
    Groups,
    Repaired,
    Slices,
)  # fmt: skip

MOST_ROWS = 20  # groups with a line each


def group_table(found: Evaluation) -> str:
    groups, train, metrics = found.groups, found.train.groups, found.json()
    lines = [
        found.verdict.sentence,
        *(f"{n}: {column_verdict(g, found.multi_label)}" for n, g in found.by_bias.items()),
        "",
        *([f"{'':15} {found.split:>9}  {'95 % interval, rows':37} {'train':>9}"] if train else []),
    ]
    for name in OF_SETS if found.multi_label else AVERAGES:
        e = getattr(groups, name)
        shown = (
            f"{percent(e.value):>9}  [{percent(e.low)}, {percent(e.high)}]  n {e.n}"
            if not math.isnan(e.value)
            else f"{'–':>9}  {e.reason}"
        )
        beside = f"{_or_dash(getattr(train, name).value):>9}  " if train else ""
        lines.append(f"{name:15} {shown:48} {beside}{MEANING[name]}")
    lines += [train_line(found.train), *found.aligned_in_words.values()]
    several = [name for name in ("f1_macro", "average_precision") if metrics.get(name) is not None]
    for name in several:
        low, high = metrics["label_intervals"][name]
        lines.append(f"{name:17} {percent(metrics[name]):>7}  [{percent(low)}, {percent(high)}]")
    leaks = metrics.get("leakage_by_bias") or ({found.data.bias_names[0]: metrics["leakage"]} if "leakage" in metrics else {})
    for name, leak in leaks.items():
        lines += [leakage_line(name, leak), *_more_leakage(leak)]
    if "corruptions" in metrics:
        corrupted = metrics["corruptions"]
        lines += ["", "on corrupted images, mean of five strengths:"]
        lines += [f"{name:17} {percent(kind['mean']):>7}" for name, kind in corrupted["kinds"].items()]
        lines.append(f"{'mean':17} {percent(corrupted['mean']):>7}")
    lines += reliance_lines(metrics)
    lines += slices_lines(Slices.of_json(metrics["slices"])) if metrics.get("slices") else []
    for rates in found.rates_by_bias.values():
        lines += ["", *rates_lines(rates)]
    lines += more_figures(metrics)
    selection = metrics["selection"]
    lines += ["", f"selected by {selection['rule']} (step {selection['step']}); {metrics['split']} split"]
    one_column = len(groups.bias_names) == 1 and len(groups.bias_values[0]) <= 12
    if len(groups.cells) > MOST_ROWS and one_column:
        lines += ["", *_matrix(groups)]
        lines += ["", "the same on training rows:", *_matrix(train)] if train and train.bias_names == groups.bias_names else []
    else:
        lines += ["", *_rows(groups, train, found.split, "neither" if found.aligned_in_words else "")]
    small = sum(c.small for c in groups.cells)
    if small and groups.bias_names:
        lines.append(f"{small} of {len(groups.cells)} groups have fewer than {SMALL_GROUP} rows and do not count for worst_group")
    if groups.without_bias:
        lines.append(f"{groups.without_bias} rows have no bias value and are in no group")
    return "\n".join(lines)


def more_figures(metrics: dict[str, Any]) -> list[str]:
    """The answers to other questions, a line each."""
    lines = []
    if "textures" in metrics:
        t = metrics["textures"]
        shown = t["reason"] or f"{percent(t['value'])} [{percent(t['low'])}, {percent(t['high'])}]"
        lines.append(f"unbiased over {t['clusters']} clusters of {t['representation']}, {t['clusterings']} clusterings: {shown}")
    if "temporal" in metrics:
        t = metrics["temporal"]
        lines.append(f"temporal structure score: {t['value']:.3g} [{t['low']:.3g}, {t['high']:.3g}] over {t['n']} clips")
    if "erasure" in metrics:
        lines += erasure_lines(metrics["erasure"])
    if "cross_dataset" in metrics:
        c = metrics["cross_dataset"]
        lines.append(f"average precision on {len(c['by_class'])} shared classes, {c['n']} rows: {percent(c['mean'])}")
    return [*([""] if lines else []), *lines]


def erasure_lines(e: dict[str, Any]) -> list[str]:
    """What erasing the bias costs and leaves, a line for the run and one per bias column."""
    lines = [
        f"with the bias erased by {e['kind']} ({e['removed']} directions, {e['seconds']:.2g} s): F1 {percent(e['f1'])} "
        f"(before {percent(e['f1_before'])}), accuracy {percent(e['accuracy'])} (before {percent(e['accuracy_before'])})"
    ]
    for r in e["readings"]:
        value, low, high = map(percent, r["after"])
        lines.append(
            f"  linear readers of {r['bias']}: {value} [{low}, {high}], before {percent(r['before'][0])}, chance {percent(r['chance'])}; "
            f"fitted on rows that the eraser did not see: {percent(r['fresh'][0])}"
        )
    if "leakage" in e:
        lines += [f"  {leakage_line(e['leakage'].get('bias', ''), e['leakage'])}"]
    return lines


def leakage_line(name: str, leak: dict[str, Any]) -> str:
    """Leakage and amplification of one bias column in a sentence."""
    if "reason" in leak:
        return f"leakage of {leak['reason']}"
    low, high = leak["intervals"]["amplification"]
    return (
        f"leakage of {name}: {percent(leak['model'])} from the logits, {percent(leak['dataset_at_f1'])} from labels "
        f"wrong as often (F1 {percent(leak['f1'])}), {percent(leak['dataset'])} from true labels, "
        f"chance {percent(leak['chance'])}; amplification {100 * leak['amplification']:.1f} points [{100 * low:.1f}, {100 * high:.1f}]"
        + _directions(leak)
        + "".join(f"; {note}" for note in leakage_notes(leak))
    )


def _directions(leak: dict[str, Any]) -> str:
    """Directional amplification, where it was measured and is defined."""
    ways = (("dpa_to_bias", "task to bias"), ("dpa_to_task", "bias to task"))
    parts = []
    for key, words in ways:
        value = leak.get(key)
        if value is not None and value == value:
            low, high = leak["intervals"][key]
            parts.append(f"{words} {value:+.2f} [{low:+.2f}, {high:+.2f}]")
    return f"; relative, -1 to 1: {', '.join(parts)}" if parts else ""


def _more_leakage(leak: dict[str, Any]) -> list[str]:
    """The lines for noise on the embedding and for calibration, if they were asked for."""
    parts = [(f"  with noise {r['noise']:g} on the embedding", r) for r in leak.get("randomisation", [])]
    if "rba" in leak:
        c = leak["rba"]
        outside = f"{c['outside_before']} labels outside the margin before, {c['outside_after']} after"
        parts.append((f"  calibrated by each row's true value, which the scores then reveal ({outside})", c))
    lines = []
    for words, r in parts:
        low, high = r["intervals"]["amplification"]
        lines.append(
            f"{words}: F1 {percent(r['f1'])}, amplification {100 * r['amplification']:.1f} points [{100 * low:.1f}, {100 * high:.1f}]"
        )
    return lines


def audit_table(found: Audit) -> str:
    """The findings of an audit, ranked, and what to do next."""
    wide = max([24, *(len(r.label or r.name) for r in found.findings)])
    lines = [found.verdict, "", f"{'the class, read from':{wide}} {'readable':>9}  {'95 % interval':18} {'chance':>8}  kind"]
    for r in found.findings:
        span = f"{_short(r.low)} to {_short(r.high)} %"
        same = f" (the same as {r.same_as})" if r.same_as else ""
        lines.append(
            f"{r.label or r.name:{wide}} {_short(r.bias):>7} %  {span:18} {_short(max(r.chance, 0.0)):>6} %  {r.verdict}{same}  [{r.name}]"
        )
    lines += ["", found.overlaps] if found.overlaps else []
    lines += ["", *found.questions] if found.questions else []
    for c in found.columns:
        leak = c.leakage
        interval = f" [{percent(leak.low)}, {percent(leak.high)}]" if leak else ""
        shown = f"leakage {percent(leak.dataset)}{interval} (chance {percent(leak.chance)})" if leak else c.leakage_reason
        if c.association is not None:
            shown = f"share of the label {percent(c.association['share'])}, {shown}"
        lines.append(f"column {c.name}: {shown}")
    left = found.left_out
    lines += [f"left out: classes with fewer than five rows: {', '.join(left.classes)}"] if left.classes else []
    lines += [f"left out: {left.unreadable} rows whose file cannot be decoded"] if left.unreadable else []
    lines += [found.duplicates.sentence] if found.duplicates and found.duplicates.sets else []
    for leak in found.leaks["findings"] if found.leaks else ():
        lines.append(f"leak between splits: {leak['sentence']}" + (f" Use {leak['command']}." if leak["command"] else ""))
    lines += list(found.leaks["notes"]) if found.leaks else []
    if found.trial is not None:
        lines += [
            "",
            f"trial: {'a remedy is supported' if found.trial['supports'] else 'no remedy is advised'}: {found.trial['reason']}",
        ]
    lines += slices_lines(found.slices)
    lines += ["", "next:", *(f"  {step.command}    # {step.why}" for step in found.next)] if found.next else []
    return "\n".join(lines)


def repair_table(found: Repaired) -> str:
    """What a repair did, and what to do with it."""
    lines = [f"{found.repair}: {found.kept} of {found.rows} rows kept", *found.figures.get("notes", [])]
    lines += ["", f"{'representation':28} {'before':>8}  {'after':>8}  (share of the label that can be read)"]
    for r in found.measured:
        lines.append(f"{r.name:28} {_short(r.before.bias):>6} %  {_short(r.after.bias):>6} %")
        lines += [f"  {when.reason}" for when in (r.before, r.after) if when.reason]
    if found.effective is not None:
        lines += [
            "",
            f"effective rows: {found.effective:.0f}" + (f"; what could be read: {found.change}" if found.change else ""),
        ]
    after = ["", "next:", f"  {found.next}"] if found.next else []  # tables of version 0.1 have none
    said = [found.verdict, found.advice] if found.advice else [found.verdict]
    return "\n".join([*lines, "", *said, "", f"table: {found.path}", f"page: {found.page}", *after])


def _short(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _matrix(groups: Groups) -> list[str]:
    """Accuracy in per cent over n, classes down and bias values across."""
    columns = groups.bias_values[0]
    accuracy, n = groups.matrix("accuracy").tolist(), groups.matrix("n").long().tolist()
    aligned = {(c.y, c.bias[0]) for c in groups.cells if c.aligned}
    width = max(9, *(len(c) + 1 for c in columns))
    side = max(5, *(len(c) for c in groups.classes))
    lines = [f"accuracy in % / n by class (down) and {groups.bias_names[0]} (across), * = aligned"]
    lines.append(" " * side + "".join(f"{c:>{width}}" for c in columns))
    for y, name in enumerate(groups.classes):
        cells = []
        for b in range(len(columns)):
            mark = "*" if (y, b) in aligned else ""
            text = f"{mark}{100 * accuracy[y][b]:.0f}/{n[y][b]}" if n[y][b] else "–"
            cells.append(f"{text:>{width}}")
        lines.append(f"{name:>{side}}" + "".join(cells))
    return lines


def _rows(groups: Groups, train: Groups | None, split: str, neither: str) -> list[str]:
    """One line per group, lowest accuracy first, with its training rows beside it. `neither`: what to say where a pair is."""
    cells = sorted(groups.cells, key=lambda c: c.accuracy)
    seen = {(c.y, c.bias): c for c in train.cells} if train and train.bias_names == groups.bias_names else {}
    lines = [f"{'group':32} {'n':>6} {split:>9}  {'95 % interval':18}" + (f" {'train':>9} {'n':>6}" if seen else "")]
    for c in cells[:MOST_ROWS]:
        name = " × ".join([groups.classes[c.y], *(v[b] for v, b in zip(groups.bias_values, c.bias, strict=True))])
        line = f"{name:32} {c.n:6} {percent(c.accuracy):>9}  {f'{percent(c.low)} to {percent(c.high)}':18}"
        if seen:
            same = seen.get((c.y, c.bias))
            line += f" {percent(same.accuracy) if same else '–':>9} {same.n if same else 0:6}"
        kind = {True: "aligned", False: "conflicting", None: neither}[c.aligned]
        notes = [note for note in (kind, "under 30 rows" if c.small else "") if note]
        lines.append(f"{line}  {', '.join(notes)}".rstrip())
    if len(cells) > MOST_ROWS:
        lines.append(f"… and {len(cells) - MOST_ROWS} more groups in the JSON")
    return lines


def rates_lines(rates: BiasRates) -> list[str]:
    """The largest gaps in error rates and calibration between the values of a bias column."""
    lines = [f"error rates by {rates.bias}, largest gaps between values of at least {SMALL_GROUP} rows:"]
    for kind, words in (("true_positive", "true-positive rate"), ("false_positive", "false-positive rate")):
        widest = rates.widest(kind)
        if widest is None:
            lines.append(f"  {words:20} –  fewer than two values have {SMALL_GROUP} rows to judge it by, in any class")
            continue
        name, gap = widest
        by_value = getattr(rates.classes[name], f"{kind}_rate")
        lines.append(f"  {words:20} {_points(gap)} for {name}: {_two(gap, by_value)}")
    gap = rates.calibration_gap
    shown = f"–  {gap.estimate.reason}"
    if not gap.estimate.reason:
        shown = f"{_points(gap)}: {_two(gap, {v: c.error for v, c in rates.calibration.items()})}"
    return [*lines, f"  {'calibration error':20} {shown}"]


def _points(gap: Gap) -> str:
    e = gap.estimate
    return f"{100 * e.value:.1f} points [{100 * e.low:.1f}, {100 * e.high:.1f}]"


def _two(gap: Gap, rates: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{v} {percent(rates[v].value)} (n {rates[v].n})" for v in gap.between)


def _or_dash(value: float) -> str:
    return "–" if math.isnan(value) else percent(value)


def dependency_table(found: Dependency) -> str:
    """Accuracy and, for clips, temporal structure score at each keep rate, and beta."""
    clips = found.temporal
    lines = [f"{'kept':>6} {'random':>9} {'repaired':>9}" + (f" {'score':>9} {'score':>9}" if clips else "")]
    for rate, random, repaired in zip(found.rates, found.random, found.repaired, strict=True):
        line = f"{rate:>6.0%} {percent(random):>9} {percent(repaired):>9}"
        if clips:
            line += "".join(f" {clips[kind][f'{rate:g}'].value:>9.3g}" for kind in ("random", "repaired"))
        lines.append(line)
    if clips:
        lines.append("score: temporal structure score on the test split, random and repaired")
    beta = f"beta for {found.phi}: {found.beta:.3f} (accuracy on the kept rows of {found.split})"
    return "\n".join([*lines, "", beta])
