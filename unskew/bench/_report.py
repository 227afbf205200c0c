"""What a bench found: mean and spread over seeds beside the published ones, cost beside the baseline's; table files and a page."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from unskew import __version__
from unskew.bench._suite import COST, NUMBERS, Suite, Task, shown
from unskew.files import replacing, write_json, write_text
from unskew.report.html import environment, style

SCHEMA = {
    "data": pl.String, "at": pl.String, "method": pl.String, "figure": pl.String, "runs": pl.Int64, "mean": pl.Float64,
    "spread": pl.Float64, "published_mean": pl.Float64, "published_spread": pl.Float64, "difference": pl.Float64,
    "cost": pl.Float64,
}  # fmt: skip


def report(
    suite: Suite, tasks: list[Task], out: Path, published: pl.DataFrame | None, scale: str, command: str
) -> dict[str, Any]:
    """Write results.parquet, .csv, .tex, report.html and report.json from the results that are there."""
    results = {
        t.id: json.loads(p.read_text(encoding="utf-8")) for t in tasks if (p := out / "results" / f"{t.id}.json").is_file()
    }
    frame = summary(suite, tasks, results, published)
    with replacing(out / "results.parquet") as part:
        frame.write_parquet(part)
    write_text(out / "results.csv", frame.write_csv())
    write_text(out / "results.tex", latex(frame))
    runs = [t for t in tasks if not t.shared]
    found: dict[str, Any] = {
        "suite": suite.name,
        "title": suite.table.get("title", suite.name),
        "scale": scale,
        "command": command,
        "unskew": __version__,
        "runs": len(runs),
        "done": sum(t.id in results for t in runs),
        "machine": sorted({r["machine"] for r in results.values()}),
        "commits": sorted({r["commit"] for r in results.values() if r.get("commit")}),
        "versions": next((r["versions"] for r in results.values()), {}),
        "seconds": sum(r["seconds"] for r in results.values()),
        "table": frame.to_dicts(),
    }
    write_json(out / "report.json", found)
    page = (
        environment("unskew.bench").get_template("bench.html").render(found=found, blocks=_blocks(frame), style=Markup(style()))
    )
    write_text(out / "report.html", page)
    return {**found, "page": str(out / "report.html")}


def summary(suite: Suite, tasks: list[Task], results: dict[str, dict[str, Any]], published: pl.DataFrame | None) -> pl.DataFrame:
    """One row per data set, setting, method and figure; shares in per cent, cost as a ratio to the baseline's mean seconds."""
    groups: dict[tuple[str, str, str], list[Task]] = {}
    for task in tasks:
        if not task.shared:
            groups.setdefault((task.data, task.at, task.name), []).append(task)
    seconds = {key: _mean([_cost(t, results) for t in group if t.id in results]) for key, group in groups.items()}
    rows = []
    for (data, at, name), group in groups.items():
        base = seconds.get((data, at, str(suite.table.get("baseline", "erm"))), math.nan)
        for figure, published_name in suite.table["columns"].items():
            if figure == COST:
                values = [_cost(t, results) / base for t in group if t.id in results and base]
            else:
                known = [results[t.id]["figures"].get(figure) for t in group if t.id in results]
                values = [shown(figure, v) for v in known if v is not None]
            mean, spread = _published(suite, published, data, at, name, published_name, figure)
            ours = _mean(values)
            rows.append(
                {
                    "data": data, "at": at, "method": name, "figure": figure, "runs": len(values), "mean": ours,
                    "spread": statistics.stdev(values) if len(values) > 1 else math.nan, "published_mean": mean,
                    "published_spread": spread, "difference": ours - mean, "cost": seconds[(data, at, name)] / base if base else math.nan,
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _cost(task: Task, results: dict[str, dict[str, Any]]) -> float:
    """Seconds of a run and of the shared runs that it used."""
    return float(sum(results[name]["seconds"] for name in (task.id, *task.needs) if name in results))


def _mean(values: list[float]) -> float:
    return statistics.mean(values) if values else math.nan


def _published(
    suite: Suite, table: pl.DataFrame | None, data: str, at: str, name: str, metric: str, figure: str
) -> tuple[float, float]:
    entry, method = suite.part("data")[data], suite.part("method")[name]
    if table is None or not metric or not method.get("published"):
        return math.nan, math.nan
    setting = method.get("published_at", "{at}").format(at=entry.get("at", {}).get(at, at))
    wanted = {
        "method": method["published"], "dataset": entry.get("published", data), "bias_setting": setting, "metric": metric,
    }  # fmt: skip
    found = table.filter(*(pl.col(k) == v for k, v in wanted.items()))
    if found.is_empty():
        return math.nan, math.nan
    share = "%" not in metric and figure not in {COST, *NUMBERS} and float(found["mean"][0]) <= 1
    scale = 100.0 if share else 1.0
    spread = found["std"][0] if "std" in found.columns else None
    return scale * float(found["mean"][0]), math.nan if spread is None else scale * float(spread)


def latex(frame: pl.DataFrame) -> str:
    """A tabular: methods down, settings and figures across."""
    places = list(dict.fromkeys(zip(frame["data"], frame["at"], frame["figure"], strict=True)))
    cells = {(r["method"], r["data"], r["at"], r["figure"]): r for r in frame.to_dicts()}
    head = " & ".join(["method", *(_escaped(" ".join(filter(None, place))) for place in places)])
    lines = [rf"\begin{{tabular}}{{l{'r' * len(places)}}}", r"\hline", head + r" \\", r"\hline"]
    for method in dict.fromkeys(frame["method"]):
        row = [_escaped(method)]
        for place in places:
            r = cells.get((method, *place))
            shown = "--" if r is None or r["mean"] is None else f"{r['mean']:.2f}"
            row.append(shown if r is None or r["spread"] is None else rf"{shown} $\pm$ {r['spread']:.2f}")
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")


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
        blocks.append({"data": data, "at": at, "figures": list(dict.fromkeys(part["figure"])), "methods": methods})
    return blocks


def table_text(found: dict[str, Any]) -> str:
    """The same for a terminal."""
    lines = [f"{found['title']}, scale {found['scale']}: {found['done']} of {found['runs']} runs"]
    place = None
    for r in found["table"]:
        if (r["data"], r["at"]) != place:
            place = (r["data"], r["at"])
            lines += [
                "",
                " ".join(filter(None, place)),
                f"{'method':24} {'figure':14} {'ours':>16} {'published':>16} {'difference':>11} {'cost':>6}",
            ]
        ours = "–" if r["mean"] is None else f"{r['mean']:.2f}" + ("" if r["spread"] is None else f" ± {r['spread']:.2f}")
        theirs = "–" if r["published_mean"] is None else f"{r['published_mean']:.2f}"
        theirs += "" if r["published_spread"] is None else f" ± {r['published_spread']:.2f}"
        gap = "–" if r["difference"] is None else f"{r['difference']:+.2f}"
        cost = "–" if r["cost"] is None else f"{r['cost']:.2f}"
        lines.append(f"{r['method']:24} {r['figure']:14} {ours:>16} {theirs:>16} {gap:>11} {cost:>6}")
    return "\n".join(lines)
