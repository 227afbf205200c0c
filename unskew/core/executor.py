"""Where work runs: in processes on this machine, or on a Ray cluster. No other code knows.

A pass over the data is `map_rows` (core/rows.py), and `running` says where; whole runs are `run_processes` and `run_tasks`. A job has an id
and the ids of the jobs it needs; the caller says how to start one, how to tell that it is done, and who watches.
"""

import io
import os
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from unskew.core.cluster import check_address, check_nodes, check_ray, ray_amount, ray_cluster, ray_cores
from unskew.core.rows import Resources, current, map_rows, on_cluster, running

__all__ = [
    "Job", "Resources", "Watch", "check_address", "check_nodes", "check_ray", "cores", "current", "map_rows", "on_cluster", "packed",
    "ray_amount", "ray_cluster", "ray_cores", "run_processes", "run_tasks", "running", "unpacked",
]  # fmt: skip
TRIES = 2  # attempts at a job that fails in a process
RAY_RETRIES = 4  # retries of a job whose node is lost


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    needs: tuple[str, ...] = ()


class Watch(Protocol):
    """Notified of every job that starts and ends."""

    def started(self, job: str) -> None: ...
    def finished(self, job: str) -> None: ...
    def failed(self, job: str, why: str) -> None: ...


def cores() -> int:
    """Cores this process may use, where the system reports them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_processes(
    jobs: Sequence[Job],
    *,
    workers: int,
    command: Callable[[Job], list[str]],
    log: Callable[[Job], Path],
    done: Callable[[str], bool],
    watch: Watch,
) -> list[str]:
    """Run `workers` jobs at a time, one thread each; a job starts when those it needs are done. Returns the ids that failed."""
    waiting, failed = list(jobs), []
    tries: dict[str, int] = {}
    running: dict[str, tuple[subprocess.Popen[bytes], Job]] = {}
    with _lifeline() as alive:
        while waiting or running:
            while len(running) < workers and (job := next((j for j in waiting if all(map(done, j.needs))), None)) is not None:
                waiting.remove(job)
                tries[job.id] = tries.get(job.id, 0) + 1
                running[job.id] = (_start(command(job), log(job), alive), job)
                watch.started(job.id)
            if not running:
                failed += [j.id for j in waiting]  # what they need has failed
                break
            time.sleep(0.1)
            for name, (process, job) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode == 0 and done(name):
                    watch.finished(name)
                elif process.returncode != 2 and tries[name] < TRIES:
                    waiting.append(job)
                else:
                    failed.append(name)
                    watch.failed(name, _last_line(log(job)))
    return failed


def _start(words: list[str], log: Path, alive: int) -> subprocess.Popen[bytes]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open(log, "ab") as out:
        return subprocess.Popen(words, stdout=out, stderr=out, stdin=alive, env=env)


def _last_line(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return text[-1] if text else "killed"


@contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe that closes when this process ends, however it ends. Workers watch it and end too."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def run_tasks(
    waves: Sequence[Sequence[Job]],
    *,
    resources: Resources,
    work: Callable[..., Any],
    arguments: Callable[[Job], tuple[Any, ...] | None],
    collect: Callable[[Job, Any], None],
    watch: Watch,
) -> list[str]:
    """Run every job on one core, and the GPUs asked for, of some node of a cluster, wave after wave; Ray repeats those of a lost node.

    `arguments` returns None for a job whose needs have failed.
    """
    import ray

    failed: list[str] = []
    with ray_cluster(resources.address):
        run = ray.remote(num_cpus=1, num_gpus=resources.gpus, max_retries=RAY_RETRIES)(work)
        for wave in waves:
            waiting = {}
            for job in wave:
                given = arguments(job)
                if given is None:
                    failed.append(job.id)
                    continue
                watch.started(job.id)
                waiting[run.remote(*given)] = job
            while waiting:
                (done,), _ = ray.wait(list(waiting), num_returns=1)
                job = waiting.pop(done)
                try:
                    result = ray.get(done)
                except Exception as error:  # whatever killed the worker
                    failed.append(job.id)
                    watch.failed(job.id, str(error).strip().splitlines()[-1])
                    continue
                collect(job, result)
                watch.finished(job.id)
    return failed


def packed(folder: Path) -> bytes:
    """A folder as bytes, to send to another machine."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    return stream.getvalue()


def unpacked(raw: bytes, folder: Path) -> Path:
    """Unpack what `packed` made."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        archive.extractall(folder, filter="data")
    return folder
