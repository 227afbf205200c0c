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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    epochs: float = 10.0
    steps: int | None = None  # instead of epochs
    batch: int = 256  # rows of a step, over all processes
    precision: Precision = "32-true"
    clip: float = 0.0  # largest norm of the gradient; 0: off
    accumulate: int = 1  # parts a batch is cut into, to save memory; terms that compare rows compare within a part
    sampler: Literal["uniform", "balanced"] = (
        "uniform"  # balanced: every (class, bias) group, or bias value of label sets, as often
    )
    weights: Literal["auto", "loss", "chance", "keep", "sampler"] = "auto"  # how a table of weights acts; auto: as the table says
    start: str = ""  # a finished run whose network's weights are the first ones
    checkpoint: str = "200 steps"  # between two saved states
    log_every: int = 50

    def __post_init__(self) -> None:
        if self.epochs <= 0 or (self.steps is not None and self.steps < 1):
            raise UserError("train.epochs must be above 0 and train.steps at least 1")
        if self.batch < 1 or self.accumulate < 1 or self.log_every < 1 or self.clip < 0:
            raise UserError("train.batch, train.accumulate and train.log_every must be at least 1, train.clip not negative")
        check_duration(self.checkpoint, "train.checkpoint")


class NonFinite(UserError):
    """A loss left the numbers; the step and the terms say which."""


class _Updater:
    """One descent on the terms of a part: forward, backward, clip, step."""

    def __init__(self, module: nn.Module, method: Method, optimizers: dict[str, Any], engine: Engine, cfg: TrainConfig) -> None:
        self.module, self.method, self.optimizers = module, method, optimizers
        self.engine, self.cfg = engine, cfg
        self.rows = 0  # of the step's whole batch, over all processes

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
        """The batch in parts of at least two rows; as many in every process, since each part is an exchange."""
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
    lr: Callable[[int], float],  # factor on every optimiser's own rate at a step
    log: Callable[[int, dict[str, float]], None],
    after: Callable[[int], bool],  # called with the number of steps done: judge, save; true ends the training
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
            torch.manual_seed(seed_of(seed, "step", step))  # dropout of a step is a function of the step
            factor = lr(step)
            for optimizer in optimizers.values():
                for group in optimizer.param_groups:
                    group["lr"] = base[id(group)] * factor
            update.rows = rows
            with processes.batch_of(rows):
                terms = _explained(method, batch, update)
            method.age += 1
            told = (step + 1) % cfg.log_every == 0 or step + 1 == total or step == 0
            if on_cpu or told:
                _check(step, terms)
            if told:
                log(step, {**{name: float(t) for name, t in terms.items()}, "lr": factor * next(iter(base.values()))})
            if after(step + 1):
                return
            module.train()


def _explained(method: Method, batch: Batch, update: _Updater) -> dict[str, Tensor]:
    """One step; the one complaint of torch that a setting causes is said in our words."""
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
    """The global generator is given back as it was found."""
    with torch.random.fork_rng():
        yield


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Fabric hands losses over in torch's default type: in double precision that must be double too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
