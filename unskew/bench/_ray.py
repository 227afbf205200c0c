"""The runs of a suite on a Ray cluster. A task carries all it needs and gives its result back, so a lost worker costs only its run."""

import io
import socket
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from unskew.bench._live import board
from unskew.bench._suite import Suite, Task
from unskew.bench.run import run_path
from unskew.errors import UserError
from unskew.files import write_json

RETRIES = 4


def on_ray(suite: Suite, tasks: list[Task], out: Path, address: str) -> list[str]:
    """Every task on one core of some node; results are written here as they come. Gives the ids of those that failed."""
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address=address or None, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"--address {address}: no Ray cluster can be reached ({str(error).strip().splitlines()[0]})"
            ) from None
    columns = list(suite.table["columns"])
    run = ray.remote(num_cpus=1, max_retries=RETRIES)(_remote)
    folders: dict[str, Any] = {}  # of shared runs, packed, by id
    failed: list[str] = []
    try:
        with board(tasks, int(ray.cluster_resources().get("CPU", 1))) as shown:
            for wave in ([t for t in tasks if t.shared], [t for t in tasks if not t.shared]):
                waiting = {}
                for task in wave:
                    for need in task.needs:
                        if need not in folders and (folder := run_path(out, need)).is_dir():  # of a bench that goes on
                            folders[need] = ray.put(_packed(folder))
                    if not all(need in folders for need in task.needs):  # what it needs has failed
                        failed.append(task.id)
                        continue
                    shared = {need.rpartition("-shared-")[2]: folders[need] for need in task.needs}
                    shown.started(task)
                    waiting[run.remote(task.json(), columns, list(shared), *shared.values())] = task
                while waiting:
                    (done,), _ = ray.wait(list(waiting), num_returns=1)
                    task = waiting.pop(done)
                    try:
                        found, packed = ray.get(done)
                    except Exception as error:  # whatever the worker died of
                        failed.append(task.id)
                        shown.failed(task, str(error).strip().splitlines()[-1])
                        continue
                    if task.shared:
                        folders[task.id] = ray.put(packed)
                        _unpacked(packed, run_path(out, task.id))
                    # Of other runs nothing is left but the result: they are gone with their worker's folder.
                    found["run"] = str(run_path(out, task.id)) if task.shared else ""
                    write_json(out / "results" / f"{task.id}.json", found)
                    shown.finished(task, found)
    finally:
        if started_here:
            ray.shutdown()
    return failed


def check_ray(address: str) -> None:
    """Whether Ray is there, and at the address somebody; before anything is written."""
    try:
        import ray
    except ImportError:
        raise UserError("--on ray needs Ray: pip install 'unskew[ray]'") from None
    if not ray.is_initialized():
        _check_address(address)


def _check_address(address: str) -> None:
    """Ray itself waits for minutes before it says that nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():  # none, or "auto"
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"--address {address}: no Ray cluster answers there ({error.strerror or error})") from None


def _remote(task: dict[str, Any], columns: list[str], names: list[str], *packed: bytes) -> tuple[dict[str, Any], bytes]:
    """Work in a folder of the worker's own; a shared run's folder travels as bytes."""
    import torch

    from unskew.bench.worker import work

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        shared = {}
        for name, folder in zip(names, packed, strict=True):
            shared[name] = str(_unpacked(folder, Path(scratch) / f"shared-{name}"))
        place = Path(scratch) / "own" / "run"  # what lies beside a run counts as its stages, and shared runs are not
        found = work(task, place, columns, shared)
        return found, _packed(place) if task["shared"] else b""


def _packed(folder: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    return stream.getvalue()


def _unpacked(packed: bytes, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder
