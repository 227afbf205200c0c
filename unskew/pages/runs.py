"""The page of judged models: runs of unskew side by side, or the predictions of a model that was trained elsewhere."""

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from unskew.core.version import VERSION
from unskew.measure.reliance import NAMES
from unskew.pages import charts
from unskew.pages.collect import OF_SETS, judged, leakage_notes
from unskew.pages.first import BAD, DOUBT, GOOD, MOST, TONES, First, Number, Side, Todo, in_two, sorted_changes, spread
from unskew.pages.html import MEANING, page
from unskew.pages.reliance import used_plane, used_points
from unskew.pages.samples import BUDGET, enlarged, shown_rows, slice_samples
from unskew.pages.verdict import percent
from unskew.records import AVERAGES, Evaluation

Run = dict[str, Any]  # as collect.collect gives it
WHERE = {
    "conflicting": "right where the shortcut misleads",
    "aligned": "right where it holds",
    "worst_group": "right in the worst group",
    "plain": "right over all rows",
    "class_balanced": "right, mean over classes",
    "group_mean": "right, mean over groups",
}
COMPARED = {  # a figure as verb and object
    "conflicting": ("gets", "of the rows that contradict the shortcut right"),
    "worst_group": ("gets", "of the worst group right"),
    "f1_macro": ("has an F1 of", "(mean over labels)"),
    "class_balanced": ("gets", "right (mean over classes)"),
    "plain": ("gets", "of the rows right"),
}
JUDGED_BY = ("conflicting", "worst_group", "f1_macro", "class_balanced", "plain")  # the first that all runs have


def render(content: dict[str, Any]) -> str:
    """The page of a report."""
    runs, audit = content["runs"], content.get("audit")
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    about = f"{count} · {', '.join(dict.fromkeys(run['data']['name'] for run in runs))}"
    footer = f"unskew {content['unskew']} · every figure here is in the JSON file of the same name"
    return _page(
        runs, "report", ", ".join(run["name"] for run in runs), about, footer,
        audit=audit, repairs=content.get("repairs", []),
        shortcuts=charts.ranking(audit["representations"][:12]) if audit else charts.NOTHING,
        plane=charts.plane(charts.plane_points(runs)), gain=charts.gain(runs),
        used_plane=used_plane(used_points(runs, audit)), loss=charts.curves(runs, "train"), accuracy=charts.curves(runs, "val"),
    )  # fmt: skip


def render_predictions(found: Evaluation) -> str:
    """The page of an evaluation of predictions."""
    data = found.data
    run = {
        "name": PurePath(found.run).name,
        **judged(found),
        "data": {"name": found.on, "source": data.source, "multi_label": data.multi_label},
        "selection": dict(found.selection),
    }
    sliced = run["metrics"].get("slices")
    pictures = enlarged(data, shown_rows({"slices": sliced}), BUDGET // 2)
    footer = f"unskew {VERSION} · every figure here is in metrics.json, every row's slice in scores.parquet"
    return _page(
        [run], "evaluate", PurePath(found.run).name, f"{len(found.rows)} predicted rows of {found.on}", footer, audit=None, repairs=[],
        shortcuts=charts.NOTHING, plane=charts.plane(charts.plane_points([run])), gain=charts.NOTHING, used_plane=charts.NOTHING,
        loss=charts.NOTHING, accuracy=charts.NOTHING, **slice_samples(sliced, pictures),
    )  # fmt: skip


def _page(runs: list[Run], kind: str, name: str, about: str, footer: str, **drawn: Any) -> str:
    sets = all(run["data"]["multi_label"] for run in runs)  # most averages need one class per row
    first: dict[str, Any] = next((run["metrics"]["leakage"] for run in runs if "leakage" in run["metrics"]), {})
    return page(
        "report.html", kind=kind, name=name, about=about, footer=footer, runs=runs,
        first=first_of(runs, audited=drawn["audit"] is not None),
        averages=OF_SETS if sets else AVERAGES, notes=leakage_notes, meaning=MEANING, plane_bias=first.get("bias", ""),
        randomised=any(run["metrics"].get("leakage", {}).get("randomisation") for run in runs),
        corrupted=[run for run in runs if "corruptions" in run["metrics"]], reliability=charts.reliability, taken_away=NAMES, **drawn,
    )  # fmt: skip


def first_of(runs: Sequence[Run], *, audited: bool = False) -> First:
    """The first screen: of one run its verdict, of several what the best one gains over the first, and what that costs."""
    best, figure = _best(runs)
    base = runs[0]
    sentence, more = in_two(base["verdict"])
    tone = _tone(best)
    gained: list[str] = []
    lost: list[str] = []
    numbers = _numbers(base)
    if len(runs) > 1:
        sentence, more = _compared(runs, best, figure), []
        gained, lost = gains(base, best)
        numbers = (_numbers_of_two(base, best) if best is not base else []) or numbers
    sides = _sides(base, of_several=len(runs) > 1)
    chart = charts.NOTHING if sides else charts.gain(list(runs), least=1)
    return First(
        tone=tone, sentence=sentence, more=more, numbers=numbers[:3], sides=sides, chart=chart,
        todo=_todo(base, best, audited), gained=gained, lost=lost,
    )  # fmt: skip


def _tone(run: Run) -> str:
    """The verdict's, or worse if the model amplifies the bias."""
    tone = TONES[run["metrics"]["verdict"]["kind"]]
    amplifies = run["metrics"].get("leakage", {}).get("intervals", {}).get("amplification", [0])[0]
    return BAD if amplifies is not None and amplifies > 0 else tone


def _best(runs: Sequence[Run]) -> tuple[Run, str]:
    """The run with the highest conflicting accuracy, or another figure if that is not defined; and which figure it is."""
    for figure in JUDGED_BY:
        values = [_value(run, figure) for run in runs]
        if all(v is not None for v in values):
            return max(zip(runs, values, strict=True), key=lambda pair: pair[1] or 0.0)[0], figure
    return runs[0], "plain"


def _value(run: Run, figure: str) -> float | None:
    value = run["metrics"].get(figure)
    return None if value is None or value != value else float(value)


def _compared(runs: Sequence[Run], best: Run, figure: str) -> str:
    base, (verb, rows) = runs[0], COMPARED[figure]
    before, after = (percent(_value(run, figure) or 0.0) for run in (base, best))
    if best is base:
        return f"None of the others is better than {base['name']}, which {verb} {before} {rows}."
    sentence = f"{best['name']} {verb} {after} {rows}, {base['name']} {before}"
    plain = [_value(run, "aligned") for run in (base, best)]
    if figure == "conflicting" and plain[0] is not None and plain[1] is not None:
        points = 100 * (plain[1] - plain[0])
        change = "loses nothing" if abs(points) < 0.05 else f"{'gains' if points > 0 else 'loses'} {abs(points):.1f} points"
        sentence += f"; where the shortcut holds, it {change}"
    return sentence + "."


def gains(base: Run, best: Run) -> tuple[list[str], list[str]]:
    """What `best` gains over `base`, and what it loses: averages, F1 and time."""
    names = {
        "conflicting": "rows that contradict the shortcut", "worst_group": "the worst group", "group_mean": "mean over groups",
        "aligned": "rows where the shortcut holds", "plain": "all rows", "f1_macro": "F1, mean over labels",
    }  # fmt: skip
    gained, lost = sorted_changes({words: (_value(base, key), _value(best, key)) for key, words in names.items()})
    spent = [run.get("seconds") or 0.0 for run in (base, best)]
    if best is not base and min(spent) > 0 and spent[1] > 1.1 * spent[0]:
        lost.append(f"time: training took {spent[1] / spent[0]:.1f} times as long ({spent[1]:.0f} s)")
    return gained, lost


def _interval(run: Run, figure: str) -> str:
    low, high = run["metrics"]["intervals"].get(figure) or (None, None)
    n = run["metrics"]["rows"].get(figure)
    return (
        ""
        if low is None or high is None or low != low
        else f"95 % interval {percent(low)} to {percent(high)}" + (f", n {n}" if n else "")
    )


def _numbers(run: Run) -> list[Number]:
    """Three figures of one run: by group where there is a bias, else by class; with several labels, F1 and amplification."""
    shown = [
        Number(value=percent(value), label=words, note=_interval(run, key))
        for key, words in WHERE.items()
        if (value := _value(run, key)) is not None
    ]
    leak, f1 = run["metrics"].get("leakage"), _value(run, "f1_macro")
    first = []
    if leak and leak.get("amplification") is not None:
        low, high = (100 * v for v in leak["intervals"]["amplification"])
        note = f"95 % interval {low:.1f} to {high:.1f}"
        first.append(Number(value=f"{100 * leak['amplification']:+.1f}", label="points of amplification of the bias", note=note))
    if f1 is not None:
        first.append(Number(value=percent(f1), label="F1, mean over labels"))
    return [*first, *shown] if f1 is not None else shown


def _numbers_of_two(base: Run, best: Run) -> list[Number]:
    """What the best run gains over the first, figure by figure: by group first, else over all rows."""
    numbers = []
    for key, words in WHERE.items():
        before, after = _value(base, key), _value(best, key)
        if before is not None and after is not None:
            note = f"{base['name']} {percent(before)}, {best['name']} {percent(after)}"
            numbers.append(Number(value=f"{100 * (after - before):+.1f}", label=f"points {words}", note=note))
    return numbers


def _sides(run: Run, of_several: bool) -> list[Side]:
    """Aligned samples beside conflicting ones; without a bias, right ones beside wrong ones."""
    shown, whose = run["gallery"], f" ({run['name']})" if of_several else ""
    if shown["reason"]:
        return []
    wrong, right = spread(shown["wrong"], MOST), spread(shown["right"], MOST)
    if shown["kind"] == "conflicting" and shown["aligned"]:
        against = [*wrong[: MOST - min(len(right), 2)], *right][:MOST]
        return [
            Side(title=f"Where the shortcut holds{whose}", samples=spread(shown["aligned"], MOST)),
            Side(title=f"Where it misleads{whose}", samples=against),
        ]
    pairs = ((f"Got right{whose}", right), (f"Got wrong{whose}", wrong))
    return [Side(title=title, samples=samples) for title, samples in pairs if samples]


def _todo(base: Run, best: Run, audited: bool) -> list[Todo]:
    """What to do about the best run's verdict."""
    kind, source = best["metrics"]["verdict"]["kind"], shlex.quote(best["data"].get("source") or "SOURCE")
    name, tone = best["name"], _tone(best)
    used = [Todo(why=f"Prefer {name}; what is left of the shortcut in it stands below.")] if best is not base else []
    audit = (
        Todo(why="Look at the rows and tag what you see: a tag is a bias column", command=f"unskew explore {source} --write")
        if audited
        else Todo(why="Find out what it may rely on, without any bias label", command=f"unskew audit {source} --out audit")
    )
    if kind in ("collapsed", "under-trained"):
        return [
            Todo(why="Train longer, or with another learning rate, before anything else is judged: it has hardly learnt yet.")
        ]
    if kind == "memorised":
        return [
            Todo(why="Collect more rows that contradict the shortcut, or regularise: it knows its training rows by heart."),
            audit,
        ]
    if kind == "no-bias-column":
        rely = Todo(why="See what its answers depend on", command="unskew evaluate RUN --reliance")
        return [*([Todo(why=f"Prefer {name}.")] if best is not base else []), rely, audit]
    if tone == GOOD:
        used = [Todo(why=f"Use {name}.")] if best is not base else []
        check = Todo(why="Judge it on rows from elsewhere before you rely on it", command="unskew evaluate RUN --on OTHER")
        return [*used, check]
    if tone in (BAD, DOUBT) and kind != "multi-label":
        why = "Train without the shortcut; it tries first, and trains plainly if nothing supports a remedy"
        remedy = Todo(why=why, command=f"unskew train {source} --method advised --out robust")
        return [*used, remedy] if used else [remedy, audit]
    return [Todo(why="See which labels and groups differ most, below.")]
