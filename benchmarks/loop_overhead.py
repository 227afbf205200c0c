"""Time of the training loop as a ratio to the bare compute of the same network and batch size, in one run.

    python benchmarks/loop_overhead.py

Bare compute: forward, backward and optimiser step on one batch that is already a float tensor. The loop adds drawing ids,
gathering and converting pixels, the method's own terms, logging and the check for non-finite losses. The two are timed in
alternating rounds.
"""

import statistics
import time

import torch
import torch.nn.functional as F

from unskew.core.engine import Engine
from unskew.data import load
from unskew.data.augment import preset
from unskew.data.loader import Loader
from unskew.data.samplers import Sampler
from unskew.training.fit import TrainConfig, fit
from unskew.training.make import make_method

BATCH, STEPS, ROUNDS = 256, 40, 9


def main() -> None:
    data = load("colored-mnist:base=digits,ratio=0.99")
    method = make_method("erm", {}, "convnet1", {}, data, 0)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    rows = data.rows("train")
    sampler = Sampler(rows[: len(rows) // BATCH * BATCH], BATCH, 0)  # full batches only
    loader = Loader(data, sampler, change=preset("none"))
    engine = Engine("cpu")
    x, y = data.inputs.rows(rows[:BATCH])[0].float() / 255, data.y[rows[:BATCH]]

    def bare() -> float:
        started = time.perf_counter()
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(method.model(x), y).backward()
            optimizer.step()
        return time.perf_counter() - started

    def loop() -> float:
        started = time.perf_counter()
        fit(
            method, loader, {"main": optimizer}, engine, TrainConfig(batch=BATCH), seed=0, start=0, total=STEPS,
            lr=lambda step: 1.0, log=lambda step, terms: None, after=lambda done: None,
        )  # fmt: skip
        return time.perf_counter() - started

    method.train()
    bare(), loop()
    times = [(bare(), loop()) for _ in range(ROUNDS)]
    ratios = [b / a for a, b in times]
    print(f"convnet1, batch {BATCH}: bare {1000 * statistics.median(a for a, _ in times) / STEPS:.1f} ms a step")
    print(f"loop / bare = {statistics.median(ratios):.3f} (rounds {min(ratios):.3f} to {max(ratios):.3f}); must be at most 1.10")


if __name__ == "__main__":
    main()
