"""The verb `bench`: every run of a suite that has no result yet, side by side, then the report.

The folder of a bench: `bench.json` (the suite, its published table, all runs asked for so far, the commands), `tasks` (what each worker is
asked, and its log), `runs/ID` (what it trains), `results/ID.json` (what it found), and the report: `report.html`, `report.json`,
`results.parquet`, `results.csv`, `results.tex`. `--only` and `--seeds` say what is run now; the report has everything in the folder.
"""

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unskew import progress
from unskew.bench._live import board
from unskew.bench._plan import check_on_disk, plan
from unskew.bench._report import report
from unskew.bench._suite import COST, Suite, Task, read, read_json, read_result
from unskew.errors import UserError
from unskew.files import alone, write_json

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
    if on not in ("local", "ray"):
        raise UserError(f"--on {on}: must be local or ray")
    if workers < 0:
        raise UserError(f"--workers {workers}: must be at least 1, or 0 for as many as there are cores")
    asked = read(suite)
    published = asked.published()  # a wrong table is told before the work
    tasks = plan(asked, scale, seeds=seeds, only=only, extra=settings, roots=roots)
    check_on_disk(tasks)
    _known(out, asked, scale, settings or {})  # a folder that cannot take it is told before it is locked
    if on == "ray":
        from unskew.bench._ray import check_ray

        check_ray(address)
    with alone(out, "bench"):  # two would train the same runs into the same places
        known = _known(out, asked, scale, settings or {})
        left = [t for t in tasks if not _has_result(out, t, asked.table["columns"])]
        _check_comparable(out, known, asked, scale, settings, roots)
        everything, commands = _claim(out, known, asked, scale, settings or {}, tasks, command)
        for folder in ("runs", "results", "tasks"):
            (out / folder).mkdir(exist_ok=True)
        progress.say(f"{asked.name}, {scale}: {len(tasks)} runs, {len(tasks) - len(left)} of them done before")
        if on == "local":
            failed = _locally(asked, left, out, workers or _cores())
        else:
            from unskew.bench._ray import on_ray

            failed = on_ray(asked, left, out, address)
        found = report(asked, everything, out, published, scale, commands)
    return {**found, "failed": failed}


def again(out: str | Path) -> dict[str, Any]:
    """The report of a bench from the results that are there, whole or not."""
    out = Path(out).absolute()
    there = _record(out)
    if there is None:
        raise UserError(f"{out} holds no bench; name its folder with --out")
    asked = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"])
    tasks = _in_order(asked, [_task(t) for t in there["tasks"]])
    published = asked.published(there["published"]) if there["published"] else None
    return {**report(asked, tasks, out, published, there["scale"], there["commands"]), "failed": []}


def _has_result(out: Path, task: Task, columns: Iterable[str]) -> bool:
    """Whether this very run was made before; a result of the same name but other settings stops the bench.

    A run that lacks a figure, of a column that is new, is judged again; what it has trained is there.
    """
    there, asked = read_result(result_path(out, task)), json.loads(json.dumps(task.json()))
    if there is None:
        return False
    different = [key for key, value in asked.items() if key in there and there[key] != value]
    if different:
        raise UserError(
            f"{result_path(out, task)} was made with another {', '.join(different)}; choose another --out, or remove that file and "
            f"{run_path(out, task.id).parent}"
        )
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


def _record(out: Path) -> dict[str, Any] | None:
    """bench.json, whole; None if the folder has none."""
    path = out / "bench.json"
    if not path.is_file():
        return None
    there = read_json(path, "suite", "path", "text", "scale", "settings")
    try:
        if there is None:
            raise KeyError(path)
        if "tasks" not in there:
            # Of an earlier version: what was started is in `tasks`, and the published table where the suite is.
            started = [read_json(p, "task") for p in sorted((out / "tasks").glob("*.json"))]
            there |= {"tasks": [t["task"] for t in started if t is not None], "commands": []}
            try:
                there["published"] = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"]).published_text()
            except UserError as error:
                progress.say(f"no published numbers: {error}")
                there["published"] = ""
        for told in there["tasks"]:
            _task(told)
        tomllib.loads(there["text"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path} is not the record of a bench; choose another --out") from None
    return there


def _known(out: Path, suite: Suite, scale: str, settings: dict[str, str]) -> dict[str, Any]:
    """What the folder holds already. It holds one suite at one scale; what is in it stays comparable."""
    there = _record(out)
    if there is None:
        if out.is_file() or (out.is_dir() and any(out.iterdir())):
            raise UserError(f"{out} exists and is not a bench; choose another --out")
        return {"tasks": [], "commands": []}
    asked = {"suite": suite.name, "scale": scale, "settings": settings}
    for key, what in {"suite": "another suite", "scale": "another scale", "settings": "other settings"}.items():
        if there[key] != asked[key]:
            raise UserError(f"{out} holds {what}; choose another --out")
    return there


def _check_comparable(
    out: Path, known: dict[str, Any], suite: Suite, scale: str, settings: dict[str, str] | None, roots: dict[str, str] | None
) -> None:
    """What is in the folder, asked for now or not, is what the suite would run: one table holds one budget, one source, one network."""
    there = {t["id"]: t for t in known["tasks"]}
    everywhere = [*suite.part("data"), *(str(a) for entry in suite.part("data").values() for a in entry.get("at", {}))]
    methods = [name for name in suite.part("method") if any(t["name"] == name and not t["shared"] for t in there.values())]
    for seed in sorted({t["seed"] for t in there.values()}) if methods else []:
        for task in plan(suite, scale, seeds=f"{seed}..{seed}", only=[*methods, *everywhere], extra=settings, roots=roots):
            before, now = there.get(task.id, {}), json.loads(json.dumps(task.json()))
            different = [key for key, value in now.items() if key in before and before[key] != value]
            if different and read_result(result_path(out, task)) is not None:
                raise UserError(f"{out} holds a result of {task.id} with another {', '.join(different)}; choose another --out")


def _claim(
    out: Path, known: dict[str, Any], suite: Suite, scale: str, settings: dict[str, str], tasks: list[Task], command: str
) -> tuple[list[Task], list[str]]:
    """Write down what is asked for now beside what was before; all runs of the folder, and the commands that asked for them."""
    everything = {t["id"]: _task(t) for t in known["tasks"]} | {t.id: t for t in tasks}
    ordered = _in_order(suite, list(everything.values()))
    commands = list(dict.fromkeys([*known["commands"], *([command] if command else [])]))
    record = {"suite": suite.name, "path": str(suite.path.absolute()), "text": suite.text, "published": suite.published_text()}
    asked = {"scale": scale, "settings": settings, "tasks": [t.json() for t in ordered], "commands": commands}
    write_json(out / "bench.json", record | asked)
    return ordered, commands


def _task(told: dict[str, Any]) -> Task:
    return Task(**{**told, "needs": tuple(told["needs"])})


def _in_order(suite: Suite, tasks: list[Task]) -> list[Task]:
    """The runs as the suite lists them; those of a data set or method that it no longer has are left out."""
    data = {name: k for k, name in enumerate(suite.part("data"))}
    ats = {name: [str(a) for a in entry.get("at", {"": ""})] for name, entry in suite.part("data").items()}
    order = {"shared": list(suite.part("shared")), "method": list(suite.part("method"))}
    kept = [t for t in tasks if t.at in ats.get(t.data, ()) and t.name in order["shared" if t.shared else "method"]]
    if len(kept) < len(tasks):
        progress.say(f"{len(tasks) - len(kept)} runs in the folder are no longer in the suite and are left out")

    def place(task: Task) -> tuple[int, int, bool, int, int]:
        names = order["shared" if task.shared else "method"]
        return data[task.data], ats[task.data].index(task.at), not task.shared, names.index(task.name), task.seed

    return sorted(kept, key=place)


def _locally(suite: Suite, tasks: list[Task], out: Path, workers: int) -> list[str]:
    """As many runs at a time as there are cores, one thread each; a run starts when the shared runs it needs are there."""
    waiting, failed = list(tasks), []
    tries: dict[str, int] = {}
    running: dict[str, tuple[subprocess.Popen[bytes], Task]] = {}
    with board(tasks, workers) as shown, _alive() as alive:
        while waiting or running:
            while len(running) < workers and (task := _ready(waiting, out)) is not None:
                waiting.remove(task)
                tries[task.id] = tries.get(task.id, 0) + 1
                running[task.id] = (_start(suite, task, out, alive), task)
                shown.started(task)
            if not running:
                failed += [t.id for t in waiting]  # what they need has failed
                break
            time.sleep(0.1)
            for name, (process, task) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                found = read_result(result_path(out, task)) if process.returncode == 0 else None
                if found is not None:
                    shown.finished(task, found)
                elif process.returncode != 2 and tries[name] < TRIES:
                    waiting.append(task)
                else:
                    failed.append(name)
                    shown.failed(task, _last_line(out, task))
    return failed


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ready(waiting: list[Task], out: Path) -> Task | None:
    return next((t for t in waiting if all(read_result(out / "results" / f"{n}.json") for n in t.needs)), None)


@contextmanager
def _alive() -> Iterator[int]:
    """The reading end of a pipe that closes when this process ends, however it ends. Workers wait at it and end, too."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _start(suite: Suite, task: Task, out: Path, alive: int) -> subprocess.Popen[bytes]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    log = open(out / "tasks" / f"{task.id}.log", "ab")  # noqa: SIM115 - the child holds it
    words = [sys.executable, "-m", "unskew.bench.worker", str(request(suite, task, out))]
    with log:
        return subprocess.Popen(words, stdout=log, stderr=log, stdin=alive, env=env)


def _last_line(out: Path, task: Task) -> str:
    text = (out / "tasks" / f"{task.id}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return text[-1] if text else "it was killed"
