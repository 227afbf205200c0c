"""One run of a suite in a process of its own: python -m unskew.bench.worker TASK.json PLACE RESULT.json"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from unskew import __version__
from unskew.bench._suite import ANSWERS, COST
from unskew.errors import UserError, suggest
from unskew.files import write_json
from unskew.records import Run


def work(task: dict[str, Any], place: Path, columns: list[str], shared: dict[str, str]) -> dict[str, Any]:
    """Train, judge, and give what is reported. Given again after an interruption, the training goes on where it stopped."""
    settings = dict(task["settings"])
    for key, value in settings.items():
        for name, path in shared.items():
            settings[key] = settings[key].replace(f"{{shared.{name}}}", path)
        assert "{shared." not in settings[key], value
    _check_data(task, settings, columns)
    started = time.perf_counter()
    asked = {"model": task["model"], "out": place, "seed": task["seed"]}
    if task["method"] == "dependency":
        made: dict[str, Any] | Run = _dependency(task["source"], settings, asked)
        folder, parts = place, list(place.glob("*/done.json"))
    else:
        from unskew.stages import train

        made = train(task["source"], task["method"], settings=settings, **asked)
        folder, parts = made.path, list(place.parent.glob("*/done.json"))
    outcomes = [Run(p.parent).outcome for p in parts]
    # A run that was interrupted knows how long it took in all; the clock here only saw its last part.
    seconds = max(time.perf_counter() - started, sum(o["seconds"] for o in outcomes))
    found: dict[str, Any] = {**task, "run": str(folder), "seconds": seconds, "steps": sum(o["steps"] for o in outcomes)}
    found |= {
        "unskew": __version__,
        "commit": _commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": Run(parts[0].parent).config["versions"],
    }
    if not task["shared"]:
        figures = [name for name in columns if name != COST]
        if isinstance(made, Run):
            from unskew.evaluate.run import evaluate
            from unskew.measure.leakage import Attack

            questions = dict(task["judging"])
            attack = Attack(**questions.pop("attack")) if "attack" in questions else None
            metrics = evaluate(made, split=task["split"], attack=attack, **questions).metrics
            found["figures"] = {name: _figure(metrics, made, name) for name in figures}
        else:
            found["figures"] = {name: float(_inside(made, name)) for name in figures}
    return found


def _check_data(task: dict[str, Any], settings: dict[str, str], columns: list[str]) -> None:
    """What is asked of the data set beside its test split is there. Told before the training, not after it."""
    splits = {task["split"], *(c.partition(".")[0] for c in columns if "." in c)} - {"test", *ANSWERS}
    if task["shared"] or task["method"] == "dependency" or not (splits or task["judging"].get("temporal")):
        return
    from unskew import config
    from unskew.data._sources import DataConfig, load
    from unskew.evaluate.temporal import check_clips

    reading = {k.removeprefix("data."): v for k, v in settings.items() if k.startswith("data.")}
    data = load(task["source"], config.build(DataConfig, reading, "data."))
    for split in splits:
        data.rows(split)
    if task["judging"].get("temporal"):
        check_clips(data)


def _dependency(source: str, settings: dict[str, str], asked: dict[str, Any]) -> dict[str, Any]:
    from unskew import config
    from unskew.dependency import dependency

    rates = config.numbers(settings.pop("rates", "0.25,0.5,0.75"), "rates")
    return dependency(source, phi=settings.pop("phi"), rates=rates, settings=settings, **asked)


def _commit() -> str:
    """The commit of a checkout that the package runs from; empty for an installed one."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def _figure(metrics: dict[str, Any], run: Run, name: str) -> float | None:
    """A figure of evaluate's JSON by its name: `plain`, `leakage.model` inside a table, `test_biased.plain` of another split."""
    from unskew.evaluate.run import evaluate

    part, dot, key = name.partition(".")
    if dot and part not in metrics:
        metrics, name = evaluate(run, split=part).metrics, key
    value = _inside(metrics, name)
    return None if value is None else float(value)


def _inside(table: Any, name: str) -> Any:
    """`temporal.value`: an entry of a table in a table."""
    for part in name.split("."):
        if not isinstance(table, dict) or part not in table:
            raise UserError(f"there is no figure {name!r}{suggest(part, table if isinstance(table, dict) else [])}")
        table = table[part]
    return table


def main(asked: Path) -> None:
    request = json.loads(asked.read_text(encoding="utf-8"))
    found = work(request["task"], Path(request["place"]), request["columns"], request["shared"])
    write_json(Path(request["result"]), found)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        print(f"unskew: {error}", file=sys.stderr)
        raise SystemExit(2) from None
