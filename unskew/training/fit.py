"""The training loop. One loop for every method; read it top to bottom.

It never sees the test split. There are no callbacks: logging, judging and saving are function arguments.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unskew.core import engine as processes
from unskew.core.durations import check_duration
from unskew.core.engine import Engine, Precision
from unskew.core.errors import UserError
from unskew.core.rng import seed_of
from unskew.data.loader import Loader
from unskew.methods._contract import Method
from unskew.records import Batch
from unskew.training.loggers import check_asked


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    epochs: float = 10.0  # passes over the training rows
    steps: int | None = None  # number of steps, instead of epochs
    batch: int = 256  # rows per step, over all processes
    precision: Precision = "32-true"  # 32-true, 64-true, bf16-mixed or 16-mixed
    clip: float = 0.0  # largest gradient norm; 0: no clipping
    accumulate: int = 1  # split each batch into this many parts to save memory; terms that compare rows do so within a part
    sampler: Literal["uniform", "balanced"] = "uniform"  # balanced: every group equally often (multi-label: every bias value)
    weights: Literal["auto", "loss", "chance", "keep", "sampler"] = "auto"  # use of a table's weights; auto: as the table says
    tune: Literal["auto", "head", "all"] = "auto"  # what learns in a pretrained network; auto: the last layer of one we chose
    start: str = ""  # a finished run whose network gives the initial weights
    freeze: tuple[str, ...] = ()  # parts that do not learn, by the names of their parameters: model, model.blocks.conv1, mask
    checkpoint: str = "200 steps"  # interval between saved states
    log_every: int = 50  # steps between log lines
    log_to: tuple[str, ...] = ()  # also log to mlflow or wandb; their own environment variables say where

    def __post_init__(self) -> None:
        if self.epochs <= 0 or (self.steps is not None and self.steps < 1):
            raise UserError("train.epochs must be above 0 and train.steps at least 1")
        if self.batch < 1 or self.accumulate < 1 or self.log_every < 1 or self.clip < 0:
            raise UserError("train.batch, train.accumulate and train.log_every must be at least 1, train.clip not negative")
        check_duration(self.checkpoint, "train.checkpoint")
        check_asked(self.log_to)


class NonFinite(UserError):
    """A loss became non-finite; the message gives the step and the terms."""


class _Updater:
    """One update on the loss terms of a part: forward, backward, clip, step."""

    def __init__(self, module: nn.Module, method: Method, optimizers: dict[str, Any], engine: Engine, cfg: TrainConfig) -> None:
        self.module, self.method, self.optimizers = module, method, optimizers
        self.engine, self.cfg = engine, cfg
        self.rows = 0  # of the whole batch, over all processes

    def __call__(self, batch: Batch, part: str = "", optimizers: Iterable[str] | None = None) -> dict[str, Tensor]:
        self.method.zero_grad(set_to_none=True)
        columns = batch.columns()
        pieces = self._pieces(columns)
        total: dict[str, Tensor] = {}
        for k, piece in enumerate(pieces):
            with self.engine.without_sync(self.module, enabled=k < len(pieces) - 1):
                terms = self.module(piece, part)
                # Gradients are averaged over processes, so a process that holds n of N rows counts n * world / N.
                share = len(piece["index"]) * processes.world() / self.rows
                loss = torch.stack(list(terms.values())).sum()
                self.engine.backward(loss if share == 1 else loss * share, self.module)
            for name, term in terms.items():
                value = term.detach() * (len(piece["index"]) / len(batch.index))
                total[name] = total[name] + value if name in total else value
        for name in optimizers if optimizers is not None else self.optimizers:
            if self.cfg.clip:
                self.engine.clip(self.module, self.optimizers[name], self.cfg.clip)
            self.optimizers[name].step()
        return total

    def _pieces(self, columns: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        """The batch in parts of at least two rows; as many in every process, because processes exchange values in each part."""
        number = max(1, min(self.cfg.accumulate, self.rows // (2 * processes.world())))
        if number == 1:
            return [columns]
        cut = zip(*(torch.tensor_split(c, number) for c in columns.values()), strict=True)
        return [dict(zip(columns, values, strict=True)) for values in cut]


def fit(
    method: Method,
    loader: Loader,
    optimizers: dict[str, Any],
    engine: Engine,
    cfg: TrainConfig,
    *,
    seed: int,
    start: int,
    total: int,
    lr: Callable[[int], float],  # factor on each optimiser's learning rate at a step
    log: Callable[[int, dict[str, float]], None],
    after: Callable[[int], bool],  # called with the number of steps done: validate, save; true ends the training
) -> None:
    """Run steps `start` to `total`."""
    method.begin(total, loader.sampler.steps_per_epoch)
    module, wrapped = engine.setup(method, optimizers)
    update = _Updater(module, method, wrapped, engine, cfg)
    base = {id(group): group["initial_lr"] for o in optimizers.values() for group in o.param_groups}
    on_cpu = engine.device.type == "cpu"
    module.train()
    with own_chance(), default_dtype(torch.float64 if cfg.precision == "64-true" else torch.float32):
        for step, (batch, rows) in zip(range(start, total), loader.batches(start), strict=False):
            torch.manual_seed(seed_of(seed, "step", step))  # dropout depends only on the step
            factor = lr(step)
            for optimizer in optimizers.values():
                for group in optimizer.param_groups:
                    group["lr"] = base[id(group)] * factor
            update.rows = rows
            with processes.batch_of(rows):
                terms = _explained(method, batch, update)
            method.age += 1
            logged = (step + 1) % cfg.log_every == 0 or step + 1 == total or step == 0
            if on_cpu or logged:
                _check(step, terms)
            if logged:
                log(step, {**{name: float(t) for name, t in terms.items()}, "lr": factor * next(iter(base.values()))})
            if after(step + 1):
                return
            module.train()


def _explained(method: Method, batch: Batch, update: _Updater) -> dict[str, Tensor]:
    """One step; torch's batch-norm error becomes a message about train.batch."""
    try:
        return method.step(batch, update)
    except ValueError as error:
        if "more than 1 value per channel" in str(error):
            raise UserError("batch normalisation needs at least two rows in a step; raise train.batch") from None
        raise


def _check(step: int, terms: dict[str, Tensor]) -> None:
    values = {name: float(t) for name, t in terms.items()}
    if not all(map(math.isfinite, values.values())):
        shown = ", ".join(f"{k} = {v:g}" for k, v in values.items())
        raise NonFinite(f"the loss is not finite at step {step}: {shown}; lower optim.lr, or set train.clip=1")


@contextmanager
def own_chance() -> Iterator[None]:
    """Restore torch's global random state on exit."""
    with torch.random.fork_rng():
        yield


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Set torch's default dtype. Fabric casts losses to it, so training in double precision needs it double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
