"""One run of a suite in a process of its own: python -m unskew.verbs.bench_worker TASK.json [MODULE]..."""

import dataclasses
import json
import os
import platform
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unskew.core.errors import UserError
from unskew.core.files import write_json
from unskew.core.version import VERSION, commit
from unskew.data.sources import remembering
from unskew.records import Dependency, Evaluation, Run, Table
from unskew.suites.figures import COST, argument
from unskew.suites.reader import read_json, read_result
from unskew.verbs.worker import as_worker

if TYPE_CHECKING:
    from unskew.training.selection import Rule

TABLES = ("weights", "kept", "scores", "clean", "balanced")  # of a run's repairs, beside it as RUN-weights; the last stage first


@remembering()  # training and judgement read the same source
def work(task: dict[str, Any], place: Path, columns: list[str], shared: dict[str, str]) -> dict[str, Any]:
    """Train, judge, and return what is reported. Called again after an interruption, the training resumes."""
    settings = dict(task["settings"])
    for key, value in settings.items():
        for name, path in shared.items():
            settings[key] = settings[key].replace(f"{{shared.{name}}}", path)
        assert "{shared." not in settings[key], value
    _check_data(task, settings, columns)
    resumed = place.parent.is_dir() and any(place.parent.iterdir())
    started = time.perf_counter()
    asked = {"model": task["model"], "out": place, "seed": task["seed"]}
    if task["method"] == "dependency":
        outcome: Dependency | Run = _dependency(task["source"], settings, asked)
        folder, parts = place, list(place.glob("*/done.json"))
    elif task["method"] == "auto":
        outcome = _auto(task["source"], settings, asked)
        folder, parts = outcome.path, [*place.glob("models/*/done.json"), *place.glob("runs/*/*/done.json")]
    elif task.get("judge"):
        outcome = Run(Path(settings["judge"]))
        folder, parts = outcome.path, [outcome.path / "done.json"]
    else:
        from unskew.verbs.train import train

        outcome = train(task["source"], task["method"], settings=settings, force=task.get("force", False), **asked)
        folder, parts = outcome.path, list(place.parent.glob("*/done.json"))
    outcomes = [Run(p.parent).outcome for p in parts]
    # For an interrupted run, this clock covers only the last part, and its trainings know only their own time, not the time
    # between them. Such a run is marked as resumed and left out of the costs.
    seconds = max(time.perf_counter() - started, sum(o["seconds"] for o in outcomes))
    if task.get("judge"):
        seconds, outcomes = 0.0, []  # the shared run, which its cost includes, has spent them
    record: dict[str, Any] = {**task, "run": str(folder), "seconds": seconds, "steps": sum(o["steps"] for o in outcomes)}
    record |= {
        "resumed": resumed,
        "unskew": VERSION,
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": Run(parts[0].parent).config["versions"],
    }
    if not task["shared"]:
        figures = [name for name in columns if name != COST]
        if isinstance(outcome, Run):
            from unskew.verbs.evaluate import evaluate

            questions = {name: argument(name, value) for name, value in task["judging"].items()}
            judged = _read_from(evaluate(outcome, split=task["split"], **questions), task.get("read_from", ""))
            record["figures"] = {name: _figure(judged, outcome, name) for name in figures}
            record["notes"] = _notes(judged, figures)
            record["score"] = _score(outcome, task.get("choose", ""))
        else:
            record["figures"] = {name: _of_dependency(outcome, name) for name in figures}
    return record


def _check_data(task: dict[str, Any], settings: dict[str, str], columns: list[str]) -> None:
    """Reject a data set that lacks a split, or cannot answer a question, before training instead of after it."""
    from unskew.core import config
    from unskew.core.settings import Settings
    from unskew.data.reading import DataConfig
    from unskew.data.sources import load
    from unskew.verbs.bench_check import check_questions

    asks = task["judging"] or task.get("choose") or task["split"] != "test" or any("." in c for c in columns)
    if asks and not task["shared"] and task["method"] != "dependency":
        data = load(task["source"], config.build(DataConfig, Settings.of(settings)["data"], "data."))
        check_questions(task, data, columns)


def _of_dependency(found: Dependency, name: str) -> float:
    """`beta`, or the accuracy at a keep rate: `repaired@0.5`, `random@1`."""
    kind, at, rate = name.partition("@")
    return float(getattr(found, kind)[found.rates.index(float(rate))] if at else found.json()[name])


def _dependency(source: str, settings: dict[str, str], asked: dict[str, Any]) -> Dependency:
    from unskew.core import config
    from unskew.verbs.dependency import dependency

    rates = config.numbers(settings.pop("rates", "0.25,0.5,0.75"), "rates")
    return dependency(source, phi=settings.pop("phi"), rates=rates, settings=settings, **asked)


def _auto(source: str, settings: dict[str, str], asked: dict[str, Any]) -> Run:
    """The recommended model."""
    from unskew.verbs.auto import auto

    given: dict[str, Any] = {key: settings.pop(key) for key in ("budget", "rule") if key in settings}
    return Run(auto(source, settings=settings, workers=1, **given, **asked).run)


def _read_from(judged: Evaluation, place: str) -> Evaluation:
    """The evaluation with the figures of one part of an answer, such as `leakage.rba`, in place of the plain ones."""
    if not place:
        return judged
    question, *keys = place.split(".")
    answer = judged.answers[question]
    part: Any = answer
    for key in keys:
        try:
            part = part[int(key)] if isinstance(part, list) else part[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UserError(f"read_from = {place!r}: evaluate's answer has no {key!r} there") from None
    labels = judged.label_figures
    if labels is not None:
        labels = dataclasses.replace(labels, **{k: part[k] for k in ("f1_macro", "average_precision") if k in part})
    return dataclasses.replace(judged, answers={**judged.answers, question: {**answer, **part}}, label_figures=labels)


def _figure(judged: Evaluation, run: Run, name: str) -> float | None:
    """A figure by its name: `plain`, `leakage.model` of a question, `test_biased.plain` of a split, `repair.kept` of a repair."""
    part, dot, key = name.partition(".")
    if dot and part == "repair":
        return _repair_figure(run, key)
    if dot and part == "kept":
        return _kept(run.path)[key]
    if dot and part not in judged.json():
        from unskew.evaluation._contract import questions
        from unskew.verbs.evaluate import evaluate

        if any(part in question.keys for question in questions()):
            return None  # this row did not ask
        return evaluate(run, split=part).figure(key)
    return judged.figure(name)


def _score(run: Run, rule: str) -> float | None:
    """What a candidate of a grid is chosen by, from the validation split; None without a grid."""
    if not rule:
        return None
    from unskew.training.finished import open_run
    from unskew.training.predict import predict
    from unskew.training.pseudo import groups_for
    from unskew.training.selection import GUESSED, score

    method, data = open_run(run)
    index, logits = predict(method, data, data.rows("val"))
    guessed = groups_for(rule, data, 0, 0) if rule in GUESSED else None  # the same for every candidate
    return score(cast("Rule", rule), logits, data, index, guessed)


def _repair_figure(run: Run, name: str) -> float | None:
    """A figure of the last repair before the run; None if it had none, or the repair could not measure it."""
    tables = _tables(run.path)
    figures = read_json(tables[0].with_suffix(".json"), name) if tables else None
    return None if figures is None or figures[name] is None else float(figures[name])


def _tables(run: Path) -> list[Path]:
    """The tables that a run's repairs left beside it."""
    named = [run.with_name(f"{run.name}-{name}.parquet") for name in TABLES]
    return [path for path in named if path.is_file()]


@cache
def _kept(path: Path) -> dict[str, float]:
    """The training rows that the run's repairs kept, counted by true or wrong label and by agreement of bias and true label."""
    import torch

    from unskew.training.finished import own_data

    data = own_data(Run(path))
    pairs = data.alignment()
    if pairs is None:
        raise UserError(f"columns kept.*: {data.name} has no bias column, or several labels per row")
    rows = data.rows("train")  # without those that data.keep leaves out
    for table in map(Table.read, _tables(path)):
        rows = rows[~torch.isin(rows, table.index[table.column("weight") <= 0])]
    rows = rows[(data.bias[rows] >= 0).all(1)]
    truth = torch.tensor(data.columns["clean_label"].to_list())[rows] if "clean_label" in data.columns else data.y[rows]
    clean = truth == data.y[rows]
    aligned, conflicting = pairs.of_rows(truth, data.bias[rows])
    return {
        f"{label}_{bias}": float((of_label & of_bias).sum())
        for label, of_label in (("clean", clean), ("noisy", ~clean))
        for bias, of_bias in (("aligned", aligned), ("conflicting", conflicting))
    }


def _notes(judged: Evaluation, figures: list[str]) -> list[str]:
    """Why a figure of this run is missing."""
    lost = sorted(set(judged.incomparable()) & set(figures))
    return [f"no {' and '.join(lost)}: {judged.incomparable()[lost[0]]}"] if lost else []


def main(asked: Path) -> None:
    request = json.loads(asked.read_text(encoding="utf-8"))
    before = read_result(Path(request["result"]))
    record = work(request["task"], Path(request["place"]), request["columns"], request["shared"])
    if before is not None:  # judged again, but trained before: keep the facts of that training
        record |= {
            key: before[key]
            for key in ("seconds", "steps", "resumed", "unskew", "commit", "machine", "versions")
            if key in before
        }
    write_json(Path(request["result"]), record)


if __name__ == "__main__":
    as_worker(main)
