"""The verb `bench`: every run of a suite that has no result yet, side by side, then the report.

The folder of a bench: `bench.json` (the suite, its published table, all runs asked for so far, the commands), `tasks` (what each worker is
asked, and its log), `runs/ID` (what it trains), `results/ID.json` (what it found), and the report: `report.html`, `report.json`,
`results.parquet`, `results.csv`, `results.tex`. `--only` and `--seeds` say what is run now; the report has everything in the folder.
"""

import json
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from unskew.core import executor, progress
from unskew.core.errors import UserError
from unskew.core.executor import Job
from unskew.core.files import write_json
from unskew.core.workplace import alone
from unskew.pages.bench import report
from unskew.pages.board import Board, board
from unskew.records import BenchReport
from unskew.suites.plan import check_on_disk, plan
from unskew.suites.reader import COST, Suite, Task, read, read_json, read_result


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
    settings: Mapping[str, str] | None = None,
    roots: Mapping[str, str] | None = None,
    resume: bool = False,
    command: str = "",
) -> BenchReport:
    """Run a suite into the folder `out` and report it. Called again, only what has no result is run."""
    out = Path(out).absolute()
    if resume and not (out / "bench.json").is_file():
        raise UserError(f"--resume: {out} holds no bench")
    if on not in ("local", "ray"):
        raise UserError(f"--executor {on}: must be local or ray")
    if workers < 0:
        raise UserError(f"--workers {workers}: must be at least 1, or 0 for as many as there are cores")
    extra, places = dict(settings or {}), dict(roots or {})
    asked = read(suite)
    published = asked.published()  # reject a bad table before the work
    tasks = plan(asked, scale, seeds=seeds, only=only, extra=extra, roots=places)
    check_on_disk(tasks)
    _known(out, asked, scale, extra)  # reject a folder that cannot take it before it is locked
    if on == "ray":
        executor.check_ray(address)
    with alone(out, "bench"):  # two would train the same runs into the same places
        known = _known(out, asked, scale, extra)
        left = [t for t in tasks if not _has_result(out, t, asked.table["columns"])]
        _check_comparable(out, known, asked, scale, extra, places)
        everything, commands = _claim(out, known, asked, scale, extra, tasks, command)
        for folder in ("runs", "results", "tasks"):
            (out / folder).mkdir(exist_ok=True)
        progress.say(f"{asked.name}, {scale}: {len(tasks)} runs, {len(tasks) - len(left)} of them done before")
        failed = _on_ray(asked, left, out, address) if on == "ray" else _locally(asked, left, out, workers or executor.cores())
        return report(asked, everything, out, published, scale, commands, failed)


def again(out: str | Path) -> BenchReport:
    """The report of a bench from the results that are there, whole or not."""
    out = Path(out).absolute()
    there = _record(out)
    if there is None:
        raise UserError(f"{out} holds no bench; name its folder with --out")
    asked = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"])
    tasks = _in_order(asked, [_task(t) for t in there["tasks"]])
    published = asked.published(there["published"]) if there["published"] else None
    return report(asked, tasks, out, published, there["scale"], there["commands"], [])


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


class _Watch:
    """The board, told of jobs by their ids."""

    def __init__(self, shown: Board, tasks: list[Task], out: Path) -> None:
        self.shown, self.tasks, self.out = shown, {t.id: t for t in tasks}, out

    def started(self, job: str) -> None:
        self.shown.started(self.tasks[job])

    def finished(self, job: str) -> None:
        self.shown.finished(self.tasks[job], read_result(result_path(self.out, self.tasks[job])) or {})

    def failed(self, job: str, why: str) -> None:
        self.shown.failed(self.tasks[job], why)


def _locally(suite: Suite, tasks: list[Task], out: Path, workers: int) -> list[str]:
    """In processes of this machine."""
    by_id = {t.id: t for t in tasks}
    worker = [sys.executable, "-m", "unskew.verbs.bench_worker"]
    with board(tasks, workers) as shown:
        return executor.run_processes(
            [Job(t.id, t.needs) for t in tasks],
            workers=workers,
            command=lambda job: [*worker, str(request(suite, by_id[job.id], out))],
            log=lambda job: out / "tasks" / f"{job.id}.log",
            done=lambda name: read_result(out / "results" / f"{name}.json") is not None,
            watch=_Watch(shown, tasks, out),
        )


def _on_ray(suite: Suite, tasks: list[Task], out: Path, address: str) -> list[str]:
    """On a cluster: a task carries all it needs and gives its result back, so a lost worker costs only its run."""
    by_id, columns = {t.id: t for t in tasks}, list(suite.table["columns"])
    folders: dict[str, bytes] = {}  # of shared runs, packed, by id

    def arguments(job: Job) -> tuple[Any, ...] | None:
        for need in job.needs:
            if need not in folders and (folder := run_path(out, need)).is_dir():  # of a bench that resumes
                folders[need] = executor.packed(folder)
        if not all(need in folders for need in job.needs):
            return None
        shared = {need.rpartition("-shared-")[2]: folders[need] for need in job.needs}
        return by_id[job.id].json(), columns, list(shared), *shared.values()

    def collect(job: Job, result: tuple[dict[str, Any], bytes]) -> None:
        task, (found, raw) = by_id[job.id], result
        if task.shared:
            folders[task.id] = raw
            executor.unpacked(raw, run_path(out, task.id))
        # Of other runs nothing is left but the result: they are gone with their worker's folder.
        found["run"] = str(run_path(out, task.id)) if task.shared else ""
        write_json(result_path(out, task), found)

    waves = [[Job(t.id, t.needs) for t in tasks if t.shared is shared] for shared in (True, False)]
    with executor.ray_cluster(address), board(tasks, executor.ray_cores(address)) as shown:
        watch = _Watch(shown, tasks, out)
        return executor.run_on_ray(
            waves, address=address, work=_remote, arguments=arguments, collect=collect, watch=watch
        )  # fmt: skip


def _remote(task: dict[str, Any], columns: list[str], names: list[str], *folders: bytes) -> tuple[dict[str, Any], bytes]:
    """Work in a folder of the worker's own; a shared run's folder travels as bytes."""
    import torch

    from unskew.verbs.bench_worker import work

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        shared = {}
        for name, folder in zip(names, folders, strict=True):
            shared[name] = str(executor.unpacked(folder, Path(scratch) / f"shared-{name}"))
        place = Path(scratch) / "own" / "run"  # what lies beside a run counts as its stages, and shared runs are not
        found = work(task, place, columns, shared)
        return found, executor.packed(place) if task["shared"] else b""
