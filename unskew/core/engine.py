"""Device, precision and processes: the only file that touches them.

One process is the default and runs the same code as many. `torchrun` starts several; with one process, every function here
is the identity.
"""

import ctypes
import inspect
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, cast

import torch
import torch.distributed as td
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from unskew.core.errors import UserError

Precision = Literal["32-true", "64-true", "bf16-mixed", "16-mixed"]

_global_rows: int | None = None  # rows of the step's whole batch, over all processes


def world() -> int:
    return td.get_world_size() if td.is_available() and td.is_initialized() else 1


def rank() -> int:
    return td.get_rank() if td.is_available() and td.is_initialized() else 0


def planned_world() -> int:
    """The number of processes `torchrun` started, known before they have connected."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def global_sum(t: Tensor) -> Tensor:
    """Sum of `t` over all processes, outside the graph."""
    total = t.detach().clone()
    if world() > 1:
        td.all_reduce(total)
    return total


def global_sum_with_gradient(t: Tensor) -> Tensor:
    """Sum of `t` over all processes; gradients flow from every process's result to every process's `t`."""
    return cast(Tensor, _SumOverRanks.apply(t)) if world() > 1 else t  # type: ignore[no-untyped-call]


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        return global_sum(t)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override,unused-ignore]
        return global_sum(grad)


def gather_rows(t: Tensor) -> Tensor:
    """The rows of all processes, one after another; processes may have different numbers of rows."""
    if world() == 1:
        return t
    counts = [torch.zeros(1, dtype=torch.long, device=t.device) for _ in range(world())]
    td.all_gather(counts, torch.tensor([len(t)], device=t.device))
    longest = max(int(c) for c in counts)
    padded = torch.cat([t, t.new_zeros(longest - len(t), *t.shape[1:])]).contiguous()
    parts = [torch.empty_like(padded) for _ in range(world())]
    td.all_gather(parts, padded)
    return torch.cat([part[: int(c)] for part, c in zip(parts, counts, strict=True)])


def shard(rows: Tensor) -> Tensor:
    """This process's rows of a batch."""
    return rows[rank() :: world()]


def whole_batch(t: Tensor) -> Tensor:
    """The rows of the step's whole batch, ordered as a single process would order them; gradients flow to all of them.

    For terms that compare rows with one another. A batch split by train.accumulate is compared part by part.
    """
    if world() == 1:
        return t
    rows, mine = shard_of_batch(len(t))
    if rows == len(t):
        return t
    placed = t.new_zeros(rows, *t.shape[1:])
    placed[mine] = t
    return global_sum_with_gradient(placed)


@contextmanager
def batch_of(rows: int) -> Iterator[None]:
    """Inside, the processes work on one batch of `rows` rows, split as `shard` splits it."""
    global _global_rows
    before, _global_rows = _global_rows, rows
    try:
        yield
    finally:
        _global_rows = before


def shard_of_batch(local_rows: int) -> tuple[int, slice]:
    """Rows of the whole batch and this process's share of them, for random draws that must not depend on the split."""
    if world() == 1 or _global_rows is None or len(range(rank(), _global_rows, world())) != local_rows:
        return local_rows, slice(None)
    return _global_rows, slice(rank(), None, world())


def check_device(device: str) -> torch.device:
    """The device of this name; raises if this machine does not have it."""
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (number and (kind != "cuda" or not number.isdigit())):
        raise UserError(f"no device {device!r}; available: auto, cpu, cuda, cuda:0, mps")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device {device!r} is not available: torch sees {torch.cuda.device_count()} CUDA devices; use --device cpu"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UserError("device 'mps' is not available on this machine; use --device cpu")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return torch.device(f"{kind}:{number}" if number else kind)


class Engine:
    """Lightning Fabric behind the few calls the loop needs."""

    def __init__(self, device: str = "auto", precision: Precision = "32-true", *, alternating: bool = False) -> None:
        from lightning_fabric import Fabric
        from lightning_fabric.strategies.ddp import DDPStrategy

        processes = planned_world()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        check_device(device)
        accelerator, _, number = device.partition(":")
        devices: Any = [int(number)] if number else local
        strategy: Any = "auto"
        if processes > 1:
            # No broadcast of buffers at each step: a method with state across ranks sums it itself. Torch renamed the option.
            known = inspect.signature(DistributedDataParallel.__init__).parameters
            still: dict[str, Any] = {"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False}
            strategy = DDPStrategy(find_unused_parameters=alternating, **still)
        self.fabric = Fabric(
            accelerator=cast(Any, accelerator),
            devices=devices,
            num_nodes=max(processes // max(local, 1), 1),
            strategy=strategy,
            precision=precision,
        )
        self.fabric.launch()
        self.device = self.fabric.device
        self.lead = self.fabric.global_rank == 0
        if self.device.type == "cpu":
            keep_freed_memory()

    def setup(self, module: nn.Module, optimizers: dict[str, Optimizer]) -> tuple[nn.Module, dict[str, Any]]:
        wrapped = self.fabric.setup_module(module, move_to_device=True)
        return wrapped, {name: self.fabric.setup_optimizers(o) for name, o in optimizers.items()}

    def backward(self, loss: Tensor, module: nn.Module) -> None:
        self.fabric.backward(loss, model=cast(Any, module))

    def clip(self, module: nn.Module, optimizer: Any, norm: float) -> None:
        self.fabric.clip_gradients(cast(Any, module), optimizer, max_norm=norm, error_if_nonfinite=False)

    def without_sync(self, module: nn.Module, enabled: bool) -> AbstractContextManager[Any]:
        """Inside, gradients accumulate without being exchanged: for all but the last part of a batch."""
        if not enabled or world() == 1:
            return nullcontext()
        return self.fabric.no_backward_sync(cast(Any, module), enabled=True)

    @property
    def scaler(self) -> dict[str, Any]:
        """State of the gradient scaler of half precision; empty otherwise."""
        return dict(self.fabric.strategy.precision.state_dict())

    @scaler.setter
    def scaler(self, state: dict[str, Any]) -> None:
        if state:
            self.fabric.strategy.precision.load_state_dict(state)

    def barrier(self) -> None:
        self.fabric.barrier()


def keep_freed_memory() -> None:
    """Let the allocator keep up to 1 GiB of freed memory for the next step.

    By default glibc returns large tensors to the system as soon as they are freed, so every step pays for the same pages
    again: a fifth of a small network's time. Does nothing without glibc.
    """
    trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(trim_threshold, 2**30)
    mallopt(mmap_threshold, 2**28)
