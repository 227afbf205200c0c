"""A pass over rows: the same function on every part of them, in this process, in worker processes, or on a Ray cluster.

Results come in the order of the parts, whoever computed them. A function is sent to each worker once, with all it needs (a
network, the list of files), and called with one part after another; what it returns goes to the caller. On a cluster, parts that
a lost node had are computed again by the others.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor

from unskew.core.cluster import check_nodes, check_ray, ray_amount, ray_cluster
from unskew.core.errors import UserError
from unskew.core.memory import release

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resources:
    """Where a pass runs, and what each of its workers has."""

    executor: Literal["local", "ray"] = "local"
    address: str = ""  # of a Ray cluster; empty: one is started on this machine
    workers: int = 0  # processes; local: 0 is this process alone; on Ray: 0 is as many as fit
    gpus: float = 0.0  # of every worker on Ray

    def __post_init__(self) -> None:
        if self.executor not in ("local", "ray"):
            raise UserError(f"--executor {self.executor}: must be local or ray")
        if self.workers < 0 or self.gpus < 0:
            raise UserError(f"--workers {self.workers} --gpus {self.gpus:g}: must not be negative")
        if self.executor == "local" and (self.address or self.gpus):
            raise UserError("--address and --gpus are for --executor ray")


_CURRENT: ContextVar[Resources | None] = ContextVar("unskew resources", default=None)


def current() -> Resources:
    """Where passes over the data run, as `running` has set it; in this process unless it has."""
    return _CURRENT.get() or Resources()


def on_cluster() -> bool:
    return current().executor == "ray"


@contextmanager
def running(
    executor: Literal["local", "ray"] = "local", address: str = "", workers: int = 0, gpus: float = 0.0
) -> Iterator[None]:
    """Inside, passes over the data run there: `with running("ray", "10.0.0.1:6379"): unskew.audit("photos/")`.

    Nothing is computed or written if no cluster answers, or if one of its nodes lacks the package.
    """
    asked = Resources(executor, address, workers, gpus)
    if executor == "local":
        yield
        return
    check_ray(address)
    with ray_cluster(address):
        check_nodes(address)
        token = _CURRENT.set(asked)
        try:
            yield
        finally:
            _CURRENT.reset(token)


def map_rows(work: Callable[[Tensor], T], parts: Sequence[Tensor], resources: Resources | None = None) -> Iterator[T]:
    """`work(part)` for every part of the rows, in order.

    `resources` is where; without it, what `running` has set. On a cluster and in processes `work` must be something that pickle
    knows: an instance of a dataclass with `__call__`, say.

    >>> list(map_rows(lambda ids: int(ids.sum()), [torch.tensor([1, 2]), torch.tensor([3])]))
    [3, 3]
    """
    asked = current() if resources is None else resources
    if asked.executor == "ray":
        return _on_ray(work, parts, asked)
    return _in_processes(work, parts, asked.workers) if asked.workers else map(work, parts)


@dataclass
class _Parts(torch.utils.data.Dataset[Any]):
    work: Callable[[Tensor], Any]

    def __getitems__(self, part: Tensor) -> Any:
        return self.work(part)


def _as_is(batch: Any) -> Any:
    return batch


def deaf_to_interrupts(worker: int) -> None:
    """Only the main process handles Ctrl-C; workers end with it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_processes(work: Callable[[Tensor], T], parts: Sequence[Tensor], workers: int) -> Iterator[T]:
    """torch's DataLoader is the pool: it keeps the order, and a few parts ahead."""
    release()  # what is held when workers start is held by each of them
    yield from torch.utils.data.DataLoader(
        _Parts(work),
        batch_sampler=cast(Any, parts),
        num_workers=workers,
        collate_fn=_as_is,
        prefetch_factor=4,
        worker_init_fn=deaf_to_interrupts,
    )


_KEPT: dict[str, Any] = {}  # in a worker on Ray: the function of the pass that it works for


def _kept(key: str, reference: Any) -> Callable[[Tensor], Any]:
    """The function of a pass, fetched when its first part arrives: a network is built once per worker, not once per part."""
    import ray

    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = pickle.loads(ray.get(reference[0]))
        torch.set_num_threads(1)  # a worker has one core, and the same sums in the same order everywhere
    return cast(Callable[[Tensor], Any], _KEPT[key])


def _one(batch: dict[str, Any], key: str, reference: Any) -> dict[str, Any]:
    """One part, as Ray Data hands it over: a block of one row."""
    work = _kept(key, reference)
    try:
        told = pickle.dumps(work(torch.from_numpy(batch["rows"][0].copy())), protocol=5)
        return {"part": batch["part"], "result": [told], "refused": [""]}
    except UserError as error:  # a request that is wrong stays wrong: no retry
        return {"part": batch["part"], "result": [b""], "refused": [str(error)]}


class _Actor:
    """A worker with a GPU: a process of its own, so that the network is on the device once."""

    def __init__(self, key: str, reference: Any) -> None:
        self.key, self.reference = key, reference

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return _one(batch, self.key, self.reference)


def _on_ray(work: Callable[[Tensor], T], parts: Sequence[Tensor], asked: Resources) -> Iterator[T]:
    """Ray Data: a block for every part, computed by tasks that keep `work`, or by actors if it is given GPUs."""
    import ray
    from ray import cloudpickle

    if not len(parts):
        return
    with ray_cluster(asked.address):
        reference = ray.put(cloudpickle.dumps(work, protocol=5))
        rows = [{"part": k, "rows": part.numpy()} for k, part in enumerate(parts)]
        given = _planned(ray.data.from_items(rows, override_num_blocks=len(rows)), reference, asked)
        for following, row in enumerate(given.iter_rows()):
            if row["refused"]:
                raise UserError(row["refused"])
            assert row["part"] == following  # preserve_order
            yield cast(T, pickle.loads(row["result"]))


def _planned(data: Any, reference: Any, asked: Resources) -> Any:
    import logging

    from ray.data import ActorPoolStrategy, TaskPoolStrategy

    # Ray Data reports its plan and bars on standard error, where only one line of ours belongs.
    data.context.enable_progress_bars = False
    data.context.print_on_execution_start = False
    data.context.execution_options.preserve_order = True
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    key = reference.hex()
    if asked.gpus:
        most = asked.workers or max(1, int(ray_amount(asked.address, "GPU") / asked.gpus))
        return data.map_batches(
            _Actor, batch_size=1, fn_constructor_args=(key, [reference]), num_cpus=1, num_gpus=asked.gpus,
            compute=ActorPoolStrategy(min_size=1, max_size=most),
        )  # fmt: skip
    return data.map_batches(
        _one, batch_size=1, fn_kwargs={"key": key, "reference": [reference]}, num_cpus=1,
        compute=TaskPoolStrategy(asked.workers or None),
    )  # fmt: skip
