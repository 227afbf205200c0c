"""One run of a suite in a process of its own: python -m unskew.bench.worker TASK.json"""

import json
import os
import platform
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from unskew import __version__
from unskew.bench._suite import ANSWERS, COST, read_result
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
    resumed = place.parent.is_dir() and any(place.parent.iterdir())
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
    # The clock here saw only the last part of a run that was interrupted, and its trainings know only their own time, not that of what
    # came between them: such a run is told apart, and no cost is made of it.
    seconds = max(time.perf_counter() - started, sum(o["seconds"] for o in outcomes))
    found: dict[str, Any] = {**task, "run": str(folder), "seconds": seconds, "steps": sum(o["steps"] for o in outcomes)}
    found |= {
        "resumed": resumed,
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
            found["notes"] = _notes(metrics, figures)
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

    def git(*words: str) -> str | None:
        try:
            said = subprocess.run(["git", "-C", str(here.parent), *words], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return said.stdout.strip() if said.returncode == 0 else None

    here = Path(__file__)
    # A package installed below somebody else's checkout is no file of that.
    if git("ls-files", "--error-unmatch", here.name) is None or (head := git("rev-parse", "--short=12", "HEAD")) is None:
        return ""
    return f"{head}-changed" if git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1])) else head


def _figure(metrics: dict[str, Any], run: Run, name: str) -> float | None:
    """A figure of evaluate's JSON by its name: `plain`, `leakage.model` inside a table, `test_biased.plain` of another split."""
    from unskew.evaluate.run import evaluate

    part, dot, key = name.partition(".")
    if dot and part not in metrics:
        metrics, name = evaluate(run, split=part).metrics, key
    value = _inside(metrics, name)
    return None if value is None or name in _elsewhere(metrics) else float(value)


def _elsewhere(metrics: dict[str, Any]) -> set[str]:
    """Figures that were read at another F1 than the model's, because labels cannot be made as wrong as it is: they compare nothing."""
    return {"leakage.dataset_at_f1", "leakage.amplification"} if metrics.get("leakage", {}).get("note") else set()


def _notes(metrics: dict[str, Any], figures: list[str]) -> list[str]:
    """Why a figure of this run is missing."""
    lost = sorted(_elsewhere(metrics) & set(figures))
    return [f"no {' and '.join(lost)}: {metrics['leakage']['note']}"] if lost else []


def _inside(table: Any, name: str) -> Any:
    """`temporal.value`: an entry of a table in a table."""
    for part in name.split("."):
        if not isinstance(table, dict) or part not in table:
            raise UserError(f"there is no figure {name!r}{suggest(part, table if isinstance(table, dict) else [])}")
        table = table[part]
    return table


def main(asked: Path) -> None:
    request = json.loads(asked.read_text(encoding="utf-8"))
    before = read_result(Path(request["result"]))
    found = work(request["task"], Path(request["place"]), request["columns"], request["shared"])
    if before is not None:  # judged again: who trained it, and how long that took, is known
        found |= {
            key: before[key]
            for key in ("seconds", "steps", "resumed", "unskew", "commit", "machine", "versions")
            if key in before
        }
    write_json(Path(request["result"]), found)


def _end_with_parent() -> None:
    """Standard input is a pipe from the bench. When it closes, the bench is gone, and nobody waits for this run."""
    os.read(0, 1)  # not by way of sys.stdin, whose lock Python asks for at its end
    os._exit(1)


if __name__ == "__main__":
    if stat.S_ISFIFO(os.fstat(0).st_mode):  # not when it is started by hand
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        print(f"unskew: {error}", file=sys.stderr)
        raise SystemExit(2) from None
