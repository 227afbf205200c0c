"""The report of a bench: mean and spread over seeds beside the published ones, and costs; as table files and a page."""

import dataclasses
import math
import statistics
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core.files import replacing, write_json, write_text
from unskew.core.settings import without
from unskew.core.version import VERSION
from unskew.data.export import csv_text
from unskew.pages.bench_first import chart, first_of, judged_by
from unskew.pages.html import page
from unskew.records import BenchReport, Row
from unskew.suites.figures import COST, is_number, shown
from unskew.suites.reader import Suite, Task, read_result
from unskew.suites.tuning import chosen_runs

AVERAGE = "average"  # in place of a data set: the mean over them
SCHEMA = {
    "data": pl.String, "at": pl.String, "method": pl.String, "figure": pl.String, "runs": pl.Int64, "mean": pl.Float64,
    "spread": pl.Float64, "published_mean": pl.Float64, "published_spread": pl.Float64, "difference": pl.Float64,
    "cost": pl.Float64,
}  # fmt: skip


def report(
    suite: Suite,
    tasks: list[Task],
    out: Path,
    published: pl.DataFrame | None,
    scale: str,
    commands: list[str],
    failed: list[str],
) -> BenchReport:
    """Write results.parquet, .csv, .tex, report.html and report.json from the results so far."""
    results = {t.id: result for t in tasks if (result := read_result(out / "results" / f"{t.id}.json")) is not None}
    frame = summary(suite, tasks, results, published)
    runs = [t for t in tasks if not t.shared]
    outcome = BenchReport(
        suite=suite.name,
        title=suite.table.get("title", suite.name),
        scale=scale,
        commands=commands,
        version=VERSION,
        runs=len(runs),
        done=sum(t.id in results for t in runs),
        machine=sorted({r["machine"] for r in results.values()}),
        commits=sorted({r["commit"] for r in results.values() if r.get("commit")}),
        versions=next((r["versions"] for r in results.values()), {}),
        seconds=sum(r["seconds"] for r in results.values()),
        resumed=sorted(name for name, r in results.items() if r.get("resumed")),
        notes=[
            *choices(runs, results),
            *(f"{t.id}: {note}" for t in runs if t.id in results for note in results[t.id].get("notes", ())),
        ],
        table=[Row(**row) for row in frame.to_dicts()],
        page=out / "report.html",
        failed=failed,
    )
    with replacing(out / "results.parquet") as part:
        frame.write_parquet(part)
    write_text(out / "results.csv", csv_text(frame))
    write_text(out / "results.tex", latex(frame))
    content = without(outcome.json(), ("page", "failed"))
    write_json(out / "report.json", content)
    write_text(outcome.page, render(content, frame, failed, str(suite.table.get("baseline", "erm"))))
    return outcome


def render(content: dict[str, Any], frame: pl.DataFrame, failed: list[str], baseline: str) -> str:
    """The page of a bench."""
    blocks = _blocks(frame)
    minutes = f"{content['seconds'] / 60:.0f} min of training"
    about = f"{content['suite']}, scale {content['scale']} · {content['done']} of {content['runs']} runs · {minutes}"
    footer = f"unskew {content['unskew']} · every figure here is in report.json, results.parquet, results.csv and results.tex"
    return page(
        "bench.html", kind="bench", name=content["title"], about=about, footer=footer,
        first=first_of(content, blocks, failed, baseline), report=content, blocks=blocks, number=number, with_spread=_with_spread,
    )  # fmt: skip


def summary(suite: Suite, tasks: list[Task], results: dict[str, dict[str, Any]], published: pl.DataFrame | None) -> pl.DataFrame:
    """One row per data set, setting, method and figure; shares in per cent, cost as the mean over seeds of the ratio to the baseline's
    seconds: seeds may have been run on machines of different speed."""
    groups: dict[tuple[str, str, str], list[Task]] = {}
    for task in tasks:
        if not task.shared:
            groups.setdefault((task.data, task.at, task.name), []).append(task)
    groups = {key: chosen_runs(group, scores(results))[0] for key, group in groups.items()}
    seconds = {key: {t.seed: c for t in group if (c := _cost(t, results)) is not None} for key, group in groups.items()}
    rows = []
    for (data, at, name), group in groups.items():
        base = seconds.get((data, at, str(suite.table.get("baseline", "erm"))), {})
        costs = [cost / base[seed] for seed, cost in seconds[(data, at, name)].items() if base.get(seed)]
        for figure, published_name in suite.columns(data).items():
            if figure == COST:
                values = costs
            else:
                known = [results[t.id]["figures"].get(figure) for t in group if t.id in results]
                values = [shown(figure, v) for v in known if v is not None]
            mean, spread = _published(suite, published, data, at, name, published_name, figure)
            ours = _mean(values)
            rows.append(
                {
                    "data": data, "at": at, "method": name, "figure": figure, "runs": len(values), "mean": ours,
                    "spread": statistics.stdev(values) if len(values) > 1 else math.nan, "published_mean": mean,
                    "published_spread": spread, "difference": ours - mean, "cost": _mean(costs),
                }
            )  # fmt: skip
    rows += _averages(suite, rows, published)
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _averages(suite: Suite, rows: list[dict[str, Any]], published: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Rows of the mean over data sets, for a suite that asks for them: each method's figures where every data set has one."""
    named, found = suite.table.get("average", ""), []
    if not named or len({row["data"] for row in rows}) < 2:
        return []
    for method, figure in dict.fromkeys((row["method"], row["figure"]) for row in rows):
        own = [row for row in rows if (row["method"], row["figure"]) == (method, figure)]
        mean = statistics.mean(row["mean"] for row in own)
        entry = suite.part("data")[own[0]["data"]]
        setting = next(iter(entry.get("at", {}).values()), "")
        theirs, spread = _look_up(suite, published, method, str(named), setting, suite.table["columns"].get(figure, ""), figure)
        found.append(
            {
                "data": AVERAGE, "at": "", "method": method, "figure": figure, "runs": min(row["runs"] for row in own), "mean": mean,
                "spread": math.nan, "published_mean": theirs, "published_spread": spread, "difference": mean - theirs, "cost": math.nan,
            }
        )  # fmt: skip
    return found


def scores(results: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    """What the candidates of a grid are chosen by."""
    return {name: result.get("score") for name, result in results.items()}


def choices(tasks: list[Task], results: dict[str, dict[str, Any]]) -> list[str]:
    """The candidates chosen from grids, in words."""
    groups: dict[tuple[str, str, str], list[Task]] = {}
    for task in tasks:
        if task.tried:
            groups.setdefault((task.data, task.at, task.name), []).append(task)
    found = {place: chosen_runs(group, scores(results))[1] for place, group in groups.items()}
    return [f"{' '.join(filter(None, place[:2]))} {words}" for place, words in found.items() if words]


def _cost(task: Task, results: dict[str, dict[str, Any]]) -> float | None:
    """Seconds of a run and of the shared runs that it used; None if one was interrupted, because its total time is not known."""
    used = [results.get(name) for name in (task.id, *task.needs)]
    if any(result is None or result.get("resumed") for result in used):
        return None
    return float(sum(result["seconds"] for result in used if result is not None))


def _mean(values: list[float]) -> float:
    return statistics.mean(values) if values else math.nan


def _published(
    suite: Suite, table: pl.DataFrame | None, data: str, at: str, name: str, metric: str, figure: str
) -> tuple[float, float]:
    entry, method = suite.part("data")[data], suite.part("method")[name]
    if table is None or not metric or not method.get("published"):
        return math.nan, math.nan
    setting = method.get("published_at", "{at}").format(at=entry.get("at", {}).get(at, at))
    return _look_up(suite, table, name, str(entry.get("published", data)), setting, metric, figure)


def _look_up(
    suite: Suite, table: pl.DataFrame | None, name: str, dataset: str, setting: str, metric: str, figure: str
) -> tuple[float, float]:
    theirs = suite.part("method")[name].get("published")
    if table is None or not metric or not theirs:
        return math.nan, math.nan
    wanted = {"method": theirs, "dataset": dataset, "bias_setting": setting, "metric": metric}
    rows = table.filter(*(pl.col(k) == v for k, v in wanted.items()))
    if rows.is_empty():
        return math.nan, math.nan
    share = "%" not in metric and figure != COST and not is_number(figure) and float(rows["mean"][0]) <= 1
    scale = 100.0 if share else 1.0
    spread = rows["std"][0] if "std" in rows.columns else None
    return scale * float(rows["mean"][0]), math.nan if spread is None else scale * float(spread)


def latex(frame: pl.DataFrame) -> str:
    """A tabular: methods down, settings and figures across, published values in brackets."""
    places = list(dict.fromkeys(zip(frame["data"], frame["at"], frame["figure"], strict=True)))
    cells = {(r["method"], r["data"], r["at"], r["figure"]): r for r in frame.to_dicts()}
    head = " & ".join(["method", *(_escaped(" ".join(filter(None, place))) for place in places)])
    lines = [rf"\begin{{tabular}}{{l{'r' * len(places)}}}", r"\hline", head + r" \\", r"\hline"]
    for method in dict.fromkeys(frame["method"]):
        row = [_escaped(method)]
        for place in places:
            r = cells.get((method, *place))
            ours = "--" if r is None or r["mean"] is None else number(r["figure"], r["mean"])
            ours += "" if r is None or r["spread"] is None else rf" $\pm$ {number(r['figure'], r['spread'])}"
            row.append(
                ours if r is None or r["published_mean"] is None else f"{ours} ({number(r['figure'], r['published_mean'])})"
            )
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def number(figure: str, value: float) -> str:
    """Shares in per cent and costs with two decimals; counts as whole numbers; beta and scores with three significant digits."""
    if is_number(figure):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:.2f}"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(f"\\{c}" if c in "_%&#${}" else special.get(c, c) for c in text)


def _blocks(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One table per data set and setting: methods down, figures across."""
    blocks = []
    for data, at in dict.fromkeys(zip(frame["data"], frame["at"], strict=True)):
        part = frame.filter((pl.col("data") == data) & (pl.col("at") == at))
        methods = [
            {
                "name": m,
                "figures": part.filter(pl.col("method") == m).to_dicts(),
                "cost": part.filter(pl.col("method") == m)["cost"][0],
            }
            for m in dict.fromkeys(part["method"])
        ]
        figures = list(dict.fromkeys(part["figure"]))
        known = set(part.drop_nulls("published_mean")["figure"])  # columns of published numbers, where there are any
        blocks.append(
            {
                "data": data,
                "at": at,
                "known": known,
                "figures": figures,
                "methods": methods,
                "chart": chart(part, judged_by(figures)),
            }
        )
    return blocks


def table_text(found: BenchReport) -> str:
    """The report as text for a terminal."""
    lines = [f"{found.title}, scale {found.scale}: {found.done} of {found.runs} runs"]
    rows = [dataclasses.asdict(row) for row in found.table]
    wide = {key: max([width, *(len(r[key]) for r in rows)]) for key, width in (("method", 16), ("figure", 11))}
    place = None
    for r in rows:
        if (r["data"], r["at"]) != place:
            place = (r["data"], r["at"])
            lines += [
                "",
                " ".join(filter(None, place)),
                f"{'method':{wide['method']}} {'figure':{wide['figure']}} {'ours':>16} {'published':>16} {'difference':>11} {'cost':>6}",
            ]
        ours, theirs = (_with_spread(r, f"{whose}mean", f"{whose}spread") for whose in ("", "published_"))
        gap = "–" if r["difference"] is None else f"{'+' if r['difference'] >= 0 else ''}{number(r['figure'], r['difference'])}"
        cost = "–" if r["cost"] is None else f"{r['cost']:.2f}"
        lines.append(f"{r['method']:{wide['method']}} {r['figure']:{wide['figure']}} {ours:>16} {theirs:>16} {gap:>11} {cost:>6}")
    if found.resumed:
        lines += ["", f"Interrupted, so not in the costs: {', '.join(found.resumed)}"]
    return "\n".join([*lines, *(["", *found.notes] if found.notes else [])])


def _with_spread(row: dict[str, Any], mean: str, spread: str) -> str:
    if row[mean] is None:
        return "–"
    return number(row["figure"], row[mean]) + ("" if row[spread] is None else f" ± {number(row['figure'], row[spread])}")
