"""The real training loop for a few steps, without a run folder."""

import torch

from unskew.core.engine import Engine
from unskew.data.loader import Loader
from unskew.data.samplers import Sampler
from unskew.training.fit import TrainConfig, fit

BATCH = 16


def optimizers_of(method):
    made = {name: torch.optim.SGD(p, lr=0.1, momentum=0.9) for name, p in method.parameter_sets().items()}
    for optimizer in made.values():
        optimizer.param_groups[0]["initial_lr"] = 0.1
    return made


def run(method, data, start, total, optimizers=None, accumulate=1, log=lambda *_: None):
    optimizers = optimizers or optimizers_of(method)
    precision = "64-true" if next(method.parameters()).dtype == torch.float64 else "32-true"
    cfg = TrainConfig(batch=BATCH, precision=precision, accumulate=accumulate)
    dtype = next(method.parameters()).dtype
    loader = Loader(data, Sampler(data.rows("train"), BATCH, 0), method.sees, dtype=dtype)
    engine = Engine("cpu", precision, alternating=bool(method.parts))
    fit(
        method, loader, optimizers, engine, cfg, seed=0, start=start, total=total,
        lr=lambda step: 1.0, log=log, after=lambda done: None,
    )  # fmt: skip
    return optimizers
