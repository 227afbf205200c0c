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
from unskew.bench._report import COST
from unskew.errors import UserError, suggest
from unskew.files import write_json
from unskew.records import Run


def work(
    task: dict[str, Any], place: Path, columns: list[str], split: str, shared: dict[str, str], leakage: bool = False
) -> dict[str, Any]:
    """Train, judge, and give what is reported. Given again after an interruption, the training goes on where it stopped."""
    from unskew.evaluate.run import evaluate
    from unskew.stages import train

    settings = dict(task["settings"])
    for key, value in settings.items():
        for name, path in shared.items():
            settings[key] = settings[key].replace(f"{{shared.{name}}}", path)
        assert "{shared." not in settings[key], value
    started = time.perf_counter()
    run = train(task["source"], task["method"], model=task["model"], out=place, seed=task["seed"], settings=settings)
    # A run that was interrupted knows how long it took in all; the clock here only saw its last part.
    parts = [Run(p.parent).outcome["seconds"] for p in place.parent.glob("*/done.json")]
    seconds = max(time.perf_counter() - started, sum(parts))
    found: dict[str, Any] = {**task, "run": str(run.path), "seconds": seconds, "steps": run.outcome["steps"]}
    found |= {
        "unskew": __version__,
        "commit": _commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": run.config["versions"],
    }
    if not task["shared"]:
        metrics = evaluate(run, split=split, leakage=leakage).metrics
        found["figures"] = {name: _figure(metrics, run, name) for name in columns if name != COST}
    return found


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

    part, dot, key = name.rpartition(".")
    table = metrics if not dot else metrics[part] if part in metrics else evaluate(run, split=part).metrics
    if key not in table:
        raise UserError(f"evaluate gives no figure {name!r}{suggest(key, table)}")
    value = table[key]
    return None if value is None else float(value)


def main(asked: Path) -> None:
    request = json.loads(asked.read_text(encoding="utf-8"))
    found = work(
        request["task"], Path(request["place"]), request["columns"], request["split"], request["shared"], request["leakage"]
    )
    write_json(Path(request["result"]), found)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:
        print(f"unskew: {error}", file=sys.stderr)
        raise SystemExit(2) from None
