"""Time of the training loop as a ratio to the bare compute of the same network and batch size, in one run.

    python -m benchmarks loop_overhead

Bare compute: forward, backward and optimiser step on one batch that is already a float tensor. The loop adds drawing ids,
gathering and converting pixels, the method's own terms, logging and the check for non-finite losses. The two are timed in
alternating rounds.
"""

import torch
import torch.nn.functional as F

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.core.engine import Engine
from unskew.data import load
from unskew.data.augment import preset
from unskew.data.loader import Loader
from unskew.data.samplers import Sampler
from unskew.training.fit import TrainConfig, fit
from unskew.training.make import make_method

BATCH, STEPS, ROUNDS = 256, 40, 9


def figures(words):
    data = load("colored-mnist:base=digits,ratio=0.99")
    method = make_method("erm", {}, "convnet1", {}, data, 0)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    rows = data.rows("train")
    sampler = Sampler(rows[: len(rows) // BATCH * BATCH], BATCH, 0)  # full batches only
    loader = Loader(data, sampler, change=preset("none"))
    engine = Engine("cpu")
    first = next(loader.batches(0))[0]  # in the memory layout of the loop
    x, y = first.x, first.y

    def bare():
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(method.model(x), y).backward()
            optimizer.step()

    def loop():
        fit(
            method, loader, {"main": optimizer}, engine, TrainConfig(batch=BATCH), seed=0, start=0, total=STEPS,
            lr=lambda step: 1.0, log=lambda step, terms: None, after=lambda done: None,
        )  # fmt: skip

    method.train()
    times = in_turn({"bare": bare, "loop": loop}, ROUNDS)
    more = {f"{name} (ms a step)": round(1000 * median(t) / STEPS, 2) for name, t in times.items()}
    what = f"the training loop over bare compute, convnet1, batch {BATCH}"
    yield Figure("loop overhead", what, ratio(times["loop"], times["bare"]), most=1.10, more=more)
