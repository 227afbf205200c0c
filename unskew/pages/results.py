"""A page of results and the file behind it: one line per run and figure, from which the page can be written again at any time.

NAME.csv is committed beside NAME.md. Every number on the page is computed from it and from the suite's published table; what is
said about them in words is kept in NAME.notes.md and copied below the tables.
"""

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core.errors import UserError
from unskew.core.files import write_text
from unskew.pages.bench import choices, number, summary
from unskew.suites.figures import COST
from unskew.suites.reader import Suite, Task, read

COLUMNS = (
    *("suite", "scale", "data", "at", "method", "tried", "seed", "figure", "value", "score", "seconds", "commit", "machine"),
    "command",
)  # fmt: skip
KEY = ("data", "at", "method", "tried", "seed", "figure")
FEWEST = 3  # seeds that a row needs; rows with fewer say so
Line = dict[str, str]


def anywhere(command: str) -> str:
    """A command without the folder that its --out lies in, which means nothing on another machine.

    >>> anywhere("unskew bench toy --out /home/me/runs/toy --seeds 5")
    'unskew bench toy --out toy --seeds 5'
    """
    return re.sub(r"(--out[ =])\S*/(?=\S)", r"\1", command)


def lines(
    suite: Suite, scale: str, tasks: Iterable[Task], results: Mapping[str, dict[str, Any]], commands: Iterable[str]
) -> list[Line]:
    """Every figure of every finished run, as text."""
    found = []
    for task in tasks:
        result = results.get(task.id)
        if task.shared or result is None:
            continue
        about = {
            "suite": suite.name, "scale": scale, "data": task.data, "at": task.at, "method": task.name,
            "tried": " ".join(f"{k}={v}" for k, v in task.tried.items()), "seed": str(task.seed),
            "score": _text(result.get("score")), "seconds": "" if result.get("resumed") else f"{_seconds(task, results):.1f}",
            "commit": str(result.get("commit", "")), "machine": str(result.get("machine", "")),
            "command": " && ".join(map(anywhere, commands)),
        }  # fmt: skip
        values = {COST: None, **result["figures"]}  # the cost is computed from the seconds
        of_run = [{**about, "figure": f, "value": _text(values[f])} for f in suite.columns(task.data) if f in values]
        found += [{name: line[name] for name in COLUMNS} for line in of_run]
    return found


def _text(value: float | None) -> str:
    return "" if value is None else repr(round(float(value), 6))


def _seconds(task: Task, results: Mapping[str, dict[str, Any]]) -> float:
    """Of the run and of the shared runs that it used."""
    return float(sum(results[name]["seconds"] for name in (task.id, *task.needs) if name in results))


def add(page: Path, new: list[Line]) -> Path:
    """Put runs into the file behind a page, in place of earlier ones of the same name, and write the page."""
    if page.suffix != ".md":
        raise UserError(f"--page {page}: must end in .md; its results go beside it, into the same name with .csv")
    table = page.with_suffix(".csv")
    old = read_lines(table) if table.is_file() else []
    for what in ("suite", "scale"):
        kinds = {line[what] for line in (*old, *new)}
        if len(kinds) > 1:
            raise UserError(f"{table} holds another {what} than the bench ({', '.join(sorted(kinds))}); choose another --page")
    every = {tuple(line[k] for k in KEY): line for line in (*old, *new)}
    if not every:
        raise UserError("no run of the bench is finished, so there is nothing to put on a page")
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(every[key] for key in sorted(every))
    write_text(table, out.getvalue())
    write_text(page, text(table))
    return table


def is_results(path: Path) -> bool:
    """Whether a CSV file is the results of a suite."""
    with path.open(encoding="utf-8") as file:
        return file.readline().startswith("suite,scale,")


def read_lines(path: Path) -> list[Line]:
    """The lines of a results file, checked."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise UserError(f"{path} is not a file of results: its columns must be {', '.join(COLUMNS)}")
        return list(reader)


def frame(suite: Suite, found: list[Line]) -> tuple[pl.DataFrame, list[str]]:
    """The summary of a results file, as a bench reports it, and the candidates chosen from grids in words."""
    tasks: dict[str, Task] = {}
    results: dict[str, dict[str, Any]] = {}
    for line in found:
        if line["method"] not in suite.part("method") or line["data"] not in suite.part("data"):
            raise UserError(f"{suite.name} has no {line['method']} on {line['data']} any more; take its lines out of the results")
        tried = dict(word.split("=", 1) for word in line["tried"].split())
        name = "/".join(line[k] for k in KEY[:-1])
        tasks[name] = Task(
            id=name, data=line["data"], at=line["at"], name=line["method"], seed=int(line["seed"]), source="", method="", model="",
            settings={}, tried=tried, choose=str(suite.table.get("choose", "")),
        )  # fmt: skip
        record = results.setdefault(name, {"figures": {}, "seconds": 0.0, "resumed": not line["seconds"]})
        record["figures"][line["figure"]] = float(line["value"]) if line["value"] else None
        record["score"] = float(line["score"]) if line["score"] else None
        record["seconds"] = float(line["seconds"] or 0)
    order = list(suite.part("method"))
    places = [(data, at) for data, entry in suite.part("data").items() for at in map(str, entry.get("at", {"": ""}))]
    asked = sorted(tasks.values(), key=lambda t: (places.index((t.data, t.at)), order.index(t.name), t.id))
    return summary(suite, asked, results, suite.published()), choices(asked, results)


def text(table: Path) -> str:
    """The page of a results file."""
    found = read_lines(table)
    suite = read(found[0]["suite"])
    rows, chosen = frame(suite, found)
    words = [
        f"# {suite.table.get('title', suite.name)}, {found[0]['scale']} scale",
        "",
        f"Written by `unskew bench report` from [{table.name}]({table.name}), which has every run with its commit; `make results`",
        "writes it again. Shares in per cent; mean ± standard deviation over seeds, with the number of seeds; published numbers beside.",
        "",
        *(f"    {command}" for command in _commands(found)),
        "",
    ]
    for data, at in dict.fromkeys(zip(rows["data"], rows["at"], strict=True)):
        words += _table(suite, rows.filter(pl.col("data") == data, pl.col("at") == at), data, at)
    few = sorted({f"{r['method']} ({r['runs']})" for r in rows.to_dicts() if 0 < r["runs"] < FEWEST})
    words += [f"Fewer than {FEWEST} seeds so far: {', '.join(few)}.", ""] if few else []
    words += ["Chosen from grids, with the mean score of every candidate:", "", *_wrapped(chosen), ""] if chosen else []
    notes = table.with_suffix(".notes.md")
    words += [notes.read_text(encoding="utf-8").strip(), ""] if notes.is_file() else []
    return "\n".join(words)


def _wrapped(items: list[str]) -> list[str]:
    """A list whose lines are not too long."""
    return [line for item in items for line in textwrap.wrap(f"- {item}", 140, subsequent_indent="  ", break_on_hyphens=False)]


def _commands(found: list[Line]) -> list[str]:
    return list(dict.fromkeys(one for line in found for one in line["command"].split(" && ") if one))


def _table(suite: Suite, rows: pl.DataFrame, data: str, at: str) -> list[str]:
    """Methods down; every figure with the published one beside it, where the suite has one."""
    cells = rows.to_dicts()
    figures = list(dict.fromkeys(r["figure"] for r in cells if r["figure"] != COST))  # which is the last column of every table
    named = suite.part("data").get(data, {}).get("at", {}).get(at, "")
    compared = [f for f in figures if any(r["figure"] == f and r["published_mean"] is not None for r in cells)]
    heads = ["method", "seeds", *(h for f in figures for h in ([f, "published"] if f in compared else [f])), "cost"]
    lines = [f"## {' '.join(filter(None, (data, at)))}" + (f" ({named})" if named and named != at else ""), ""]
    lines += [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for method in dict.fromkeys(r["method"] for r in cells):
        own = {r["figure"]: r for r in cells if r["method"] == method}
        row = [method, str(max(r["runs"] for r in own.values()))]
        for figure in figures:
            row.append(shown_with_spread(own[figure], ""))
            row += [shown_with_spread(own[figure], "published_")] if figure in compared else []
        cost = next(iter(own.values()))["cost"]
        lines.append(f"| {' | '.join([*row, '–' if cost is None else f'{cost:.2f}'])} |")
    return [*lines, ""]


def shown_with_spread(row: Mapping[str, Any], whose: str) -> str:
    """A mean and its spread as the page shows them."""
    mean, spread = row[f"{whose}mean"], row[f"{whose}spread"]
    if mean is None:
        return "–"
    return number(row["figure"], mean) + ("" if spread is None else f" ± {number(row['figure'], spread)}")
