"""From sample ids to batches on the device: one loader for data in memory and for streamed data.

In memory, a batch is one gather from a uint8 tensor. When streaming, worker processes decode the next batches. Either way the
arithmetic (to float, augmentation, normalisation) is batched on the device, and a batch holds only the columns asked for.
"""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unskew.core import engine
from unskew.data.augment import Augment, augment
from unskew.data.dataset import DataSet
from unskew.data.samplers import Sampler
from unskew.records import Batch


@dataclass
class Loader:
    """Endless batches for training, starting at any step."""

    data: DataSet
    sampler: Sampler
    sees: frozenset[str] = frozenset()
    weight: Tensor | None = None  # (N,) loss weight by sample id
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    change: Augment = field(default_factory=Augment)
    seed: int = 0
    workers: int = 0
    unreadable: set[int] = field(default_factory=set)  # ids seen that could not be decoded

    def __post_init__(self) -> None:
        self._columns: dict[str, Tensor] = {"y": self.data.y}
        if "bias" in self.sees:
            self._columns |= {"bias": self.data.bias, "group": self.data.group}
        if self.weight is not None:
            self._columns["weight"] = self.weight.to(self.dtype)

    def batches(self, start: int = 0) -> Iterator[tuple[Batch, int]]:
        """This process's batch of every step from `start` on, with the number of rows of the whole batch."""
        for step, (index, x, fine) in enumerate(self._inputs(start), start):
            whole = len(self.sampler.at(step))
            if not bool(fine.all()):
                self.unreadable.update(index[~fine].tolist())
                if bool(fine.any()):  # keep a batch of only broken files, blank: every process must make every step
                    index, x = index[fine], x[fine]
                    whole = len(index) if engine.world() == 1 else whole
            with engine.batch_of(whole):
                rows, mine = engine.shard_of_batch(len(index))
            ready = to_float(x.to(self.device, non_blocking=True), self.dtype)
            ready = channels_last(normalise(augment(ready, self.change, self.seed, step, rows, mine), self.data))
            columns = {name: c[index].to(self.device, non_blocking=True) for name, c in self._columns.items()}
            yield Batch(index=index.to(self.device), x=ready, **columns), whole

    def _inputs(self, start: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        ids = _Steps(self.sampler, start)
        if self.data.inputs.in_memory or self.workers == 0:
            for index in ids:
                yield (index, *self.data.inputs.rows(index))
            return
        yield from stream_rows(self.data.inputs, ids, self.workers)


@dataclass
class _Steps:
    """This process's ids of every step from `start` on; an endless batch sampler."""

    sampler: Sampler
    start: int

    def __iter__(self) -> Iterator[Tensor]:
        step = self.start
        while True:
            yield engine.shard(self.sampler.at(step))
            step += 1


@dataclass
class _Rows(torch.utils.data.Dataset[Any]):
    inputs: Any

    def __getitems__(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (index, *self.inputs.rows(index))


def _as_is(batch: Any) -> Any:
    return batch


def _deaf_to_interrupts(worker: int) -> None:
    """Only the main process handles Ctrl-C; workers end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def stream_rows(inputs: Any, ids: Any, workers: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(ids, inputs, readable) of each batch of ids, decoded ahead in worker processes, in order."""
    loader = torch.utils.data.DataLoader(
        _Rows(inputs),
        batch_sampler=ids,
        num_workers=workers,
        collate_fn=_as_is,
        prefetch_factor=4 if workers else None,
        worker_init_fn=_deaf_to_interrupts if workers else None,
    )
    yield from loader


def to_float(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Scale pixels (uint8) to [0, 1]; other numbers stay unchanged."""
    return x.to(dtype).div_(255) if x.dtype == torch.uint8 else x.to(dtype)


def normalise(x: Tensor, data: DataSet) -> Tensor:
    if not data.mean:
        return x
    shape = (-1, 1, 1) if x.ndim >= 4 else (-1,)
    mean = torch.tensor(data.mean, dtype=x.dtype, device=x.device).view(shape)
    std = torch.tensor(data.std, dtype=x.dtype, device=x.device).view(shape)
    return (x - mean) / std


def channels_last(x: Tensor) -> Tensor:
    """Images in the channels-last layout, which is faster for convolutions and pooling on a CPU."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def rows_in_order(
    data: DataSet,
    rows: Tensor,
    batch: int,
    *,
    workers: int = 0,
    dtype: torch.dtype = torch.float32,
    change: Augment | None = None,
    alter: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """(ids, network-ready inputs) of these rows in order, without unreadable ones; optionally altered and augmented."""
    chunks = list(torch.split(rows, batch))
    if data.inputs.in_memory or workers == 0:
        parts: Iterator[tuple[Tensor, Tensor, Tensor]] = ((i, *data.inputs.rows(i)) for i in chunks)
    else:
        parts = stream_rows(data.inputs, chunks, workers)
    for number, (index, x, fine) in enumerate(parts):
        if not bool(fine.all()):
            index, x = index[fine], x[fine]
        if len(index):
            ready = to_float(x, dtype)
            ready = ready if alter is None else alter(ready, index)
            ready = ready if change is None else augment(ready, change, 0, number, len(index), slice(None))
            yield index, channels_last(normalise(ready, data))
