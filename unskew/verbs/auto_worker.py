"""The trainings of `auto`: one after the other in this process, side by side in processes, or on a Ray cluster.

A job trains one candidate and returns what it says of some rows. Every job uses one thread wherever it runs, so that its result does
not depend on that. As a process: python -m unskew.verbs.auto_worker JOB.json [MODULE]...
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from unskew.core import executor, progress, registry
from unskew.core.engine import check_device
from unskew.core.errors import UserError
from unskew.core.executor import Job
from unskew.core.files import read_json, write_json
from unskew.core.settings import Settings
from unskew.core.threads import threads_for
from unskew.core.workplace import Busy
from unskew.data.sources import load, remembering
from unskew.records import Run
from unskew.training.finished import trained_method
from unskew.training.predict import predict
from unskew.verbs.train import train
from unskew.verbs.worker import as_worker, trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One training, and the rows that it is asked about."""

    id: str
    source: str
    method: str
    model: str
    settings: Mapping[str, Any]
    keep: str  # table whose rows of weight 0 are not trained on; empty: all are
    seed: int
    device: str
    place: str  # run folder
    rows: list[int]
    command: str
    wanted: bool = False  # whether the run itself is needed, and not just what it says


@dataclass(frozen=True, slots=True)
class Where:
    """Where jobs run."""

    out: Path
    executor: str  # local or ray
    address: str
    workers: int
    source: Any = None  # data passed from Python, which other processes cannot read

    @property
    def side_by_side(self) -> int:
        return executor.ray_cores(self.address) if self.executor == "ray" else self.workers


def work(job: Work, source: Any = None) -> dict[str, Any]:
    """Train, and return the class said of every row. A request that the method refuses is a result too, with the reason."""
    place, started = Path(job.place), time.perf_counter()
    settings = {**job.settings, **({"data.keep": job.keep} if job.keep else {})}
    source = job.source if source is None else source
    with threads_for(0):  # sums are added up in an order that depends on the number of threads
        try:
            run = train(
                source, job.method, model=job.model, out=place, seed=job.seed, device=job.device, settings=settings,
                command=job.command,
            )  # fmt: skip
            data = load(source, **Settings.of(settings)["data"])
            network = trained_method(run).to(check_device(job.device))
            index, logits = predict(network, data, torch.tensor(job.rows, dtype=torch.long))
        except Busy:
            raise
        except UserError as error:
            return {"id": job.id, "refused": str(error), "seconds": time.perf_counter() - started}
    # An interrupted run knows the time of its trainings, but not of what was between them.
    outcomes = [Run(p.parent).outcome for p in place.parent.glob(f"{place.name}*/done.json")]
    said = logits.argmax(1) if data.y.ndim == 1 else index[:0]
    training = sum(o["seconds"] for o in outcomes)
    return {
        "id": job.id,
        "seconds": max(time.perf_counter() - started, training),
        "training": training,
        "steps": sum(o["steps"] for o in outcomes),
        "index": index.tolist(),
        "said": said.tolist(),
    }


def do(jobs: Sequence[Work], where: Where) -> dict[str, dict[str, Any]]:
    """The results by id: what is there already, and the others as they are done. A job that failed has `failed`."""
    for folder in ("results", "jobs"):
        (where.out / folder).mkdir(parents=True, exist_ok=True)
    left = [job for job in jobs if read_result(where.out, job.id) is None]
    if not left:
        failed: dict[str, str] = {}
    elif where.executor == "ray":
        failed = _on_ray(left, where)
    elif where.source is None and where.workers > 1 and len(left) > 1:
        failed = _in_processes(left, where)
    else:
        failed = {}
        with remembering():
            for job in left:
                progress.say(f"auto: {job.id}")
                write_json(result_path(where.out, job.id), work(job, where.source))
    return {job.id: read_result(where.out, job.id) or {"failed": failed.get(job.id, "stopped"), "seconds": 0.0} for job in jobs}


def result_path(out: Path, name: str) -> Path:
    return out / "results" / f"{name}.json"


def read_result(out: Path, name: str) -> dict[str, Any] | None:
    """The result of a job; None if there is none that can be used."""
    path = result_path(out, name)
    if not path.is_file():
        return None
    try:
        found = read_json(path, "the result of a job")
    except UserError:
        return None
    return (
        found
        if isinstance(found.get("seconds"), float | int) and ("refused" in found or {"said", "training"} <= set(found))
        else None
    )


class _Watch:
    """Says what happens to the jobs, and remembers why one failed."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}

    def started(self, job: str) -> None:
        progress.say(f"auto: {job}")

    def finished(self, job: str) -> None:
        progress.say(f"auto: {job} is done")

    def failed(self, job: str, why: str) -> None:
        self.why[job] = why
        progress.say(f"auto: {job} failed: {why}")


def _in_processes(jobs: Sequence[Work], where: Where) -> dict[str, str]:
    """Why those failed that did."""
    by_id, watch = {job.id: job for job in jobs}, _Watch()

    def command(job: Job) -> list[str]:
        one = by_id[job.id]
        request = where.out / "jobs" / f"{one.id}.json"
        write_json(request, {**asdict(one), "result": str(result_path(where.out, one.id))})
        return [sys.executable, "-m", "unskew.verbs.auto_worker", str(request), *_trusted(one)]

    executor.run_processes(
        [Job(job.id) for job in jobs],
        workers=where.workers,
        command=command,
        log=lambda job: where.out / "jobs" / f"{job.id}.log",
        done=lambda name: read_result(where.out, name) is not None,
        watch=watch,
    )
    return watch.why


def _on_ray(jobs: Sequence[Work], where: Where) -> dict[str, str]:
    """A job carries what it needs and returns its result, and its folder if that is wanted."""
    by_id, watch = {job.id: job for job in jobs}, _Watch()

    def arguments(job: Job) -> tuple[Any, ...]:
        one = by_id[job.id]
        return asdict(one), Path(one.keep).read_bytes() if one.keep else b"", _trusted(one)

    def collect(job: Job, result: tuple[dict[str, Any], bytes]) -> None:
        record, folder = result
        if folder:
            executor.unpacked(folder, Path(by_id[job.id].place).parent)
        write_json(result_path(where.out, job.id), record)

    waves = [[Job(job.id) for job in jobs]]
    resources = executor.Resources("ray", where.address)
    executor.run_tasks(waves, resources=resources, work=_remote, arguments=arguments, collect=collect, watch=watch)
    return watch.why


def _remote(fields: dict[str, Any], keep: bytes, trusted: list[str]) -> tuple[dict[str, Any], bytes]:
    """Work in a temporary folder."""
    trust(trusted)
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "choice.parquet"
        if keep:
            table.write_bytes(keep)
        place = Path(scratch) / "runs" / Path(fields["place"]).name
        record = work(Work(**{**fields, "place": str(place), "keep": str(table) if keep else ""}))
        return record, executor.packed(place.parent) if fields["wanted"] and "said" in record else b""


def _trusted(job: Work) -> list[str]:
    """The modules that the worker of a job may import."""
    return registry.trusted([job.source, job.method, job.model, *map(str, job.settings.values())])


def main(asked: Path) -> None:
    request = json.loads(asked.read_text(encoding="utf-8"))
    result = Path(request.pop("result"))
    with remembering():
        write_json(result, work(Work(**request)))


if __name__ == "__main__":
    as_worker(main)
