"""The verb `bench`: run everything in a suite that has no result yet, side by side, then write the report.

The folder of a bench: `bench.json` (the suite, its published table, all runs asked for so far, the commands), `tasks` (the
request to each worker, and its log), `runs/ID` (what it trains), `results/ID.json` (its result), and the report: `report.html`,
`report.json`, `results.parquet`, `results.csv`, `results.tex`. `--only` and `--seeds` choose what to run now; the report covers
the whole folder.
"""

import json
import sys
import tempfile
import time
import tomllib
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from unskew.core import executor, progress, registry
from unskew.core.errors import UserError
from unskew.core.executor import Job, Resources
from unskew.core.files import check_shape, write_json
from unskew.core.workplace import Busy, alone
from unskew.pages.bench import report
from unskew.pages.board import Board, board
from unskew.pages.results import add, lines
from unskew.records import BenchReport
from unskew.suites.figures import COST
from unskew.suites.plan import check_on_disk, plan
from unskew.suites.reader import Suite, Task, read, read_json, read_result
from unskew.verbs.bench_check import check_tasks

PATIENCE = 60.0  # seconds that a repeated run waits for the one before it
_TASK: dict[str, Any] = {
    "id": str, "data": str, "at": str, "name": str, "seed": int, "source": str, "method": str, "model": str, "settings": dict,
    "shared": bool, "judging": dict, "split": str,
}  # fmt: skip


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
    gpus: float = 0.0,
    settings: Mapping[str, str] | None = None,
    roots: Mapping[str, str] | None = None,
    resume: bool = False,
    command: str = "",
) -> BenchReport:
    """Run a suite into the folder `out` and report it. Called again, it runs only what has no result yet."""
    out = Path(out).absolute()
    if resume and not (out / "bench.json").is_file():
        raise UserError(f"--resume: {out} holds no bench; leave out --resume to start one")
    where = Resources(cast(Any, on), address if on == "ray" else "", gpus=gpus)
    if workers < 0:
        raise UserError(f"--workers {workers}: must be at least 1, or 0 for one per core")
    extra, places = dict(settings or {}), dict(roots or {})
    asked = read(suite)
    published = asked.published()  # reject a bad table before the work
    tasks = plan(asked, scale, seeds=seeds, only=only, extra=extra, roots=places)
    check_on_disk(tasks)
    _known(out, asked, scale, extra)  # reject an unsuitable folder before locking it
    if on == "ray":
        executor.check_ray(address)
    check_tasks(asked, [t for t in tasks if read_result(result_path(out, t)) is None])
    with alone(out, "bench"):  # two benches would train the same runs into the same places
        known = _known(out, asked, scale, extra)
        left = [t for t in tasks if not _has_result(out, t, asked.columns(t.data))]
        _check_comparable(out, known, asked, scale, extra, places)
        everything, commands = _claim(out, known, asked, scale, extra, tasks, command)
        for folder in ("runs", "results", "tasks"):
            (out / folder).mkdir(exist_ok=True)
        progress.say(f"{asked.name}, {scale}: {len(tasks)} runs, {len(tasks) - len(left)} of them already done")
        failed = _on_ray(asked, left, out, where) if on == "ray" else _locally(asked, left, out, workers or executor.cores())
        return report(asked, everything, out, published, scale, commands, failed)


def again(out: str | Path, page: str | Path | None = None) -> BenchReport:
    """Write the report of a bench again, from the results so far; with `page`, also that page and the results file beside it."""
    out = Path(out).absolute()
    there = _record(out)
    if there is None:
        raise UserError(f"{out} holds no bench; name its folder with --out")
    asked = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"])
    tasks = _in_order(asked, [_task(t) for t in there["tasks"]])
    published = asked.published(there["published"]) if there["published"] else None
    if page is not None:
        results = {t.id: result for t in tasks if (result := read_result(result_path(out, t))) is not None}
        add(Path(page), lines(asked, there["scale"], tasks, results, there["commands"]))
    return report(asked, tasks, out, published, there["scale"], there["commands"], [])


def _has_result(out: Path, task: Task, columns: Iterable[str]) -> bool:
    """Whether this run has a result; raises if a run of the same name has one with other settings.

    A run that lacks the figure of a new column is judged again, but not trained again.
    """
    there, asked = read_result(result_path(out, task)), json.loads(json.dumps(task.json()))
    if there is None:
        return False
    different = [key for key, value in asked.items() if key in there and there[key] != value]
    if different:
        raise UserError(
            f"{result_path(out, task)} was made by another request (different: {', '.join(different)}); "
            f"choose another --out, or remove that file and {run_path(out, task.id).parent}"
        )
    return task.shared or all(name in there["figures"] for name in columns if name != COST)


def result_path(out: Path, task: Task) -> Path:
    return out / "results" / f"{task.id}.json"


def run_path(out: Path, name: str) -> Path:
    """The folder of a run, inside a folder of its own that also holds its stages."""
    return out / "runs" / name / "run"


def request(suite: Suite, task: Task, out: Path) -> Path:
    """Write the request to a worker as a file."""
    path = out / "tasks" / f"{task.id}.json"
    shared = {need.rpartition("-shared-")[2]: str(run_path(out, need)) for need in task.needs}
    write_json(
        path,
        {
            "task": task.json(),
            "place": str(run_path(out, task.id)),
            "result": str(result_path(out, task)),
            "columns": list(suite.columns(task.data)),
            "shared": shared,
        },
    )
    return path


def _record(out: Path) -> dict[str, Any] | None:
    """bench.json, completed if an earlier version wrote it; None if the folder has none."""
    path = out / "bench.json"
    if not path.is_file():
        return None
    there = read_json(path, "suite", "path", "text", "scale", "settings")
    try:
        if there is None:
            raise KeyError(path)
        if "tasks" not in there:
            # From an earlier version: the runs started are in `tasks`, and the published table is beside the suite.
            started = [read_json(p, "task") for p in sorted((out / "tasks").glob("*.json"))]
            there |= {"tasks": [t["task"] for t in started if t is not None], "commands": []}
            try:
                there["published"] = Suite(Path(there["path"]), tomllib.loads(there["text"]), there["text"]).published_text()
            except UserError as error:
                progress.say(f"no published numbers: {error}")
                there["published"] = ""
        for task in there["tasks"]:
            check_shape(_task(task).json(), _TASK, path)
        tomllib.loads(there["text"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"{path} is not the record of a bench; choose another --out") from None
    return there


def _known(out: Path, suite: Suite, scale: str, settings: dict[str, str]) -> dict[str, Any]:
    """What the folder already holds. It may hold only one suite at one scale, so that its results stay comparable."""
    there = _record(out)
    if there is None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
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
    """Everything in the folder must be what the suite would run now: a table must not mix budgets, sources or networks."""
    there = {t["id"]: t for t in known["tasks"]}
    # No other data sets: one that the scale leaves out need not suit its settings.
    used = {t["data"] for t in there.values()} & set(suite.part("data"))
    everywhere = [*used, *(str(a) for name in used for a in suite.part("data")[name].get("at", {}))]
    methods = [name for name in suite.part("method") if any(t["name"] == name and not t["shared"] for t in there.values())]
    for seed in sorted({t["seed"] for t in there.values()}) if methods else []:
        for task in plan(suite, scale, seeds=f"{seed}..{seed}", only=[*methods, *everywhere], extra=settings, roots=roots):
            before, now = there.get(task.id, {}), json.loads(json.dumps(task.json()))
            different = [key for key, value in now.items() if key in before and before[key] != value]
            if different and read_result(result_path(out, task)) is not None:
                raise UserError(
                    f"{out} holds a result of {task.id} by another request (different: {', '.join(different)}); choose another --out"
                )


def _claim(
    out: Path, known: dict[str, Any], suite: Suite, scale: str, settings: dict[str, str], tasks: list[Task], command: str
) -> tuple[list[Task], list[str]]:
    """Add this request to bench.json; returns all runs of the folder and the commands that asked for them."""
    everything = {t["id"]: _task(t) for t in known["tasks"]} | {t.id: t for t in tasks}
    ordered = _in_order(suite, list(everything.values()))
    commands = list(dict.fromkeys([*known["commands"], *([command] if command else [])]))
    record = {"suite": suite.name, "path": str(suite.path.absolute()), "text": suite.text, "published": suite.published_text()}
    asked = {"scale": scale, "settings": settings, "tasks": [t.json() for t in ordered], "commands": commands}
    write_json(out / "bench.json", record | asked)
    return ordered, commands


def _task(fields: dict[str, Any]) -> Task:
    return Task(**{**fields, "needs": tuple(fields["needs"])})


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
    """Tells the board about jobs, which are known by their ids."""

    def __init__(self, shown: Board, tasks: list[Task], out: Path) -> None:
        self.shown, self.tasks, self.out = shown, {t.id: t for t in tasks}, out

    def started(self, job: str) -> None:
        self.shown.started(self.tasks[job])

    def finished(self, job: str) -> None:
        self.shown.finished(self.tasks[job], read_result(result_path(self.out, self.tasks[job])) or {})

    def failed(self, job: str, why: str) -> None:
        self.shown.failed(self.tasks[job], why)


def _locally(suite: Suite, tasks: list[Task], out: Path, workers: int) -> list[str]:
    """Run in processes on this machine; returns the ids of failed runs."""
    by_id = {t.id: t for t in tasks}
    worker = [sys.executable, "-m", "unskew.verbs.bench_worker"]
    with board(tasks, workers) as shown:
        return executor.run_processes(
            [Job(t.id, t.needs) for t in tasks],
            workers=workers,
            command=lambda job: [*worker, str(request(suite, by_id[job.id], out)), *_trusted(by_id[job.id])],
            log=lambda job: out / "tasks" / f"{job.id}.log",
            done=lambda name: read_result(out / "results" / f"{name}.json") is not None,
            watch=_Watch(shown, tasks, out),
        )


def _on_ray(suite: Suite, tasks: list[Task], out: Path, where: Resources) -> list[str]:
    """Run on a cluster. A task carries everything it needs and returns its result, so a lost worker costs only its run.

    On a node that sees the bench's folder a run is made there, and one that is repeated resumes; other nodes send the folder back.
    """
    sign = out / "tasks" / f".seen-{uuid.uuid4().hex}"  # a node that sees it sees the folder, and not another of the same name
    by_id = {t.id: t for t in tasks}
    folders: dict[str, bytes] = {}  # packed folders of shared runs, by id

    def arguments(job: Job) -> tuple[Any, ...] | None:
        for need in job.needs:
            if need not in folders and (folder := run_path(out, need)).is_dir():  # from before a resume
                folders[need] = executor.packed(folder)
        if not all(need in folders for need in job.needs):
            return None
        shared = {need.rpartition("-shared-")[2]: folders[need] for need in job.needs}
        task = by_id[job.id]
        return task.json(), list(suite.columns(task.data)), _trusted(task), str(sign), list(shared), *shared.values()

    def collect(job: Job, result: tuple[dict[str, Any], bytes]) -> None:
        task, (record, raw) = by_id[job.id], result
        if task.shared:
            folders[task.id] = raw or executor.packed(run_path(out, task.id))
        if raw:
            executor.unpacked(raw, run_path(out, task.id).parent)
        write_json(result_path(out, task), record)

    waves = [[Job(t.id, t.needs) for t in tasks if t.shared is shared] for shared in (True, False)]
    with executor.ray_cluster(where.address), board(tasks, executor.ray_cores(where.address)) as shown:
        executor.check_nodes(where.address)
        sign.touch()
        try:
            return executor.run_tasks(
                waves, resources=where, work=_remote, arguments=arguments, collect=collect, watch=_Watch(shown, tasks, out)
            )
        finally:
            sign.unlink(missing_ok=True)


def _trusted(task: Task) -> list[str]:
    """The modules that the worker of a run may import."""
    return registry.trusted([task.source, task.method, task.model, *task.settings.values(), *map(str, task.judging.values())])


def _remote(
    task: dict[str, Any], columns: list[str], trusted: list[str], sign: str, names: list[str], *folders: bytes
) -> tuple[dict[str, Any], bytes]:
    """Work in the bench's folder where this node sees it; else in a temporary one, which is sent back as bytes."""
    import torch

    from unskew.verbs.bench_worker import work
    from unskew.verbs.worker import trust

    trust(trusted)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        shared = {}
        for name, folder in zip(names, folders, strict=True):
            shared[name] = str(executor.unpacked(folder, Path(scratch) / f"shared-{name}"))
        here = Path(sign).is_file()
        # Files beside a run count as its stages, which shared runs are not.
        place = run_path(Path(sign).parent.parent, task["id"]) if here else Path(scratch) / "own" / "run"
        record = _when_free(lambda: work(task, place, columns, shared))
        made = place.parent.is_dir()  # not if a shared run was only judged
        record["run"] = str(run_path(Path(sign).parent.parent, task["id"])) if made else ""
        return record, executor.packed(place.parent) if made and not here else b""


def _when_free(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A run that is repeated waits until the worker that had it before has noticed that its node is lost."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return make()
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
