"""The verb `bench`: every run of a suite that has no result yet, side by side, then the report."""

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unskew import progress
from unskew.bench._live import board
from unskew.bench._plan import check_on_disk, plan
from unskew.bench._report import report
from unskew.bench._suite import COST, Suite, Task, read
from unskew.errors import UserError
from unskew.files import write_json

TRIES = 2  # of a run that fails


def bench(
    suite: str,
    *,
    scale: str = "smoke",
    on: str = "local",
    out: str | Path = "bench",
    seeds: int | str = 0,
    only: Iterable[str] = (),
    workers: int = 0,
    address: str = "",
    settings: dict[str, str] | None = None,
    roots: dict[str, str] | None = None,
    resume: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Run a suite into the folder `out` and report it. Given again, only what has no result is run.

    `seeds` says how many, or which: 3, or "1..2". `roots` says where real sets lie: {"celeba": "data/celeba"}.
    """
    out = Path(out).absolute()
    if resume and not (out / "bench.json").is_file():
        raise UserError(f"--resume: {out} holds no bench")
    asked = read(suite)
    published = asked.published()  # a wrong name is told before the work
    tasks = plan(asked, scale, seeds=seeds, only=only, extra=settings, roots=roots)
    check_on_disk(tasks)
    _claim(out, asked, scale, settings or {})
    for folder in ("runs", "results", "tasks"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    left = [t for t in tasks if not _has_result(out, t, asked.table["columns"])]
    progress.say(f"{asked.name}, {scale}: {len(tasks)} runs, {len(tasks) - len(left)} of them done before")
    if on == "local":
        failed = _locally(asked, left, out, workers or len(os.sched_getaffinity(0)))
    elif on == "ray":
        from unskew.bench._ray import on_ray

        failed = on_ray(asked, left, out, address)
    else:
        raise UserError(f"--on {on}: must be local or ray")
    found = report(asked, tasks, out, published, scale, command)
    return {**found, "failed": failed}


def again(out: str | Path, command: str = "") -> dict[str, Any]:
    """The report of a bench from the results that are there, whole or not."""
    out = Path(out).absolute()
    if not (out / "bench.json").is_file():
        raise UserError(f"{out} holds no bench; name its folder with --out")
    there = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    asked = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"])
    known = [json.loads(p.read_text(encoding="utf-8"))["task"] for p in sorted((out / "tasks").glob("*.json"))]
    tasks = [Task(**{**t, "needs": tuple(t["needs"])}) for t in known]
    return {**report(asked, tasks, out, asked.published(), there["scale"], command), "failed": []}


def _has_result(out: Path, task: Task, columns: Iterable[str]) -> bool:
    """Whether this very run was made before; a result of the same name but other settings stops the bench.

    A run that lacks a figure, of a column that is new, is judged again; what it has trained is there.
    """
    path = result_path(out, task)
    if not path.is_file():
        return False
    there, asked = json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(task.json()))
    different = [key for key, value in asked.items() if key in there and there[key] != value]
    if different:
        raise UserError(f"{path} was made with another {', '.join(different)}; choose another --out, or delete that file")
    return task.shared or all(name in there["figures"] for name in columns if name != COST)


def result_path(out: Path, task: Task) -> Path:
    return out / "results" / f"{task.id}.json"


def run_path(out: Path, name: str) -> Path:
    """Where a run goes. Its stages lie beside it, in a folder of its own."""
    return out / "runs" / name / "run"


def request(suite: Suite, task: Task, out: Path) -> Path:
    """What a worker is asked for, as a file."""
    path = out / "tasks" / f"{task.id}.json"
    shared = {need.rpartition("-shared-")[2]: str(run_path(out, need)) for need in task.needs}
    write_json(
        path,
        {
            "task": task.json(),
            "place": str(run_path(out, task.id)),
            "result": str(result_path(out, task)),
            "columns": list(suite.table["columns"]),
            "shared": shared,
        },
    )
    return path


def _claim(out: Path, suite: Suite, scale: str, settings: dict[str, str]) -> None:
    """A folder holds one suite at one scale; what is in it stays comparable."""
    path = out / "bench.json"
    asked = {"suite": suite.name, "path": str(suite.path), "text": suite.text, "scale": scale, "settings": settings}
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        for key, what in {"suite": "another suite", "scale": "another scale", "settings": "other settings"}.items():
            if there[key] != asked[key]:
                raise UserError(f"{out} holds {what}; choose another --out")
    elif out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out} exists and is not a bench; choose another --out")
    write_json(path, asked)


def _locally(suite: Suite, tasks: list[Task], out: Path, workers: int) -> list[str]:
    """As many runs at a time as there are cores, one thread each; a run starts when the shared runs it needs are there."""
    waiting, failed = list(tasks), []
    tries: dict[str, int] = {}
    running: dict[str, tuple[subprocess.Popen[bytes], Task]] = {}
    with board(tasks, workers) as shown:
        while waiting or running:
            while len(running) < workers and (task := _ready(waiting, out)) is not None:
                waiting.remove(task)
                tries[task.id] = tries.get(task.id, 0) + 1
                running[task.id] = (_start(suite, task, out), task)
                shown.started(task)
            if not running:
                failed += [t.id for t in waiting]  # what they need has failed
                break
            time.sleep(0.1)
            for name, (process, task) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode == 0:
                    shown.finished(task, json.loads(result_path(out, task).read_text(encoding="utf-8")))
                elif process.returncode != 2 and tries[name] < TRIES:
                    waiting.append(task)
                else:
                    failed.append(name)
                    shown.failed(task, _last_line(out, task))
    return failed


def _ready(waiting: list[Task], out: Path) -> Task | None:
    return next((t for t in waiting if all((out / "results" / f"{n}.json").is_file() for n in t.needs)), None)


def _start(suite: Suite, task: Task, out: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    log = open(out / "tasks" / f"{task.id}.log", "ab")  # noqa: SIM115 - the child holds it
    words = [sys.executable, "-m", "unskew.bench.worker", str(request(suite, task, out))]
    with log:
        return subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)


def _last_line(out: Path, task: Task) -> str:
    text = (out / "tasks" / f"{task.id}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return text[-1] if text else "it was killed"
