"""What a training step of each joint method costs, as a ratio to a step of erm with the same network, in one run.

python benchmarks/step_cost.py [--model convnet1] [--rounds 8]

Methods take turns, so that a noisy machine affects all alike; the figure is the median ratio over the rounds. The same steps on a
set ten times as large show that the cost does not grow with the data.
"""

import argparse
import statistics
import time

import torch

from unskew.core.engine import Engine
from unskew.data import load
from unskew.data.loader import Loader
from unskew.data.samplers import Sampler
from unskew.training.fit import TrainConfig, fit
from unskew.training.make import make_method

METHODS = {
    "erm": {},
    "lff": {},
    "rubi": {},
    "learned_mixin": {"pretrain": "0"},
    "rebias": {"g.model": "rebias-conv", "g.kernel": "1", "g.channels": "4,4,4,8"},
    "lnl": {},
    "blind_eye": {},
    "grl": {},
    "group_dro": {},
    "gray": {},
    "hex": {},
}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--model", default="convnet1")
    words.add_argument("--rounds", type=int, default=8)
    words.add_argument("--steps", type=int, default=10)
    given = words.parse_args()
    data = load("colored-mnist:ratio=0.99")
    made = {name: prepared(name, settings, given.model, data) for name, settings in METHODS.items()}
    made["g alone"] = prepared("erm", {}, "rebias-conv", data, {"kernel": "1", "channels": "4,4,4,8"})
    times = {name: [] for name in made}
    for _ in range(given.rounds + 1):
        for name, run in made.items():
            started = time.perf_counter()
            run(given.steps)
            times[name].append((time.perf_counter() - started) / given.steps)
    base = times["erm"][1:]
    for name, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(seconds[1:], base, strict=True))
        print(f"{name:14} {1000 * statistics.median(seconds[1:]):7.1f} ms a step, {ratio:5.2f} times erm", flush=True)
    growth(given.steps * given.rounds)


def prepared(name, settings, model, data, model_settings=None):
    method = make_method(name, settings, model, model_settings or {}, data, 0)
    optimizers = {n: torch.optim.SGD(p, lr=1e-3, momentum=0.9) for n, p in method.parameter_sets().items()}
    for optimizer in optimizers.values():
        optimizer.param_groups[0]["initial_lr"] = 1e-3
    loader = Loader(data, Sampler(data.rows("train"), 256, 0), method.sees)
    engine, cfg, done = Engine("cpu", alternating=bool(method.parts)), TrainConfig(log_every=10**9), [0]

    def run(steps):
        fit(
            method, loader, optimizers, engine, cfg, seed=0, start=done[0], total=done[0] + steps,
            lr=lambda step: 1.0, log=lambda step, terms: None, after=lambda step: False,
        )  # fmt: skip
        done[0] += steps

    return run


def growth(steps):
    """lff, which keeps state for every sample, on 20,000 and on 200,000 rows of two numbers."""
    seconds = {}
    runs = {rows: prepared("lff", {}, "mlp", load(f"planted:rows={rows},bias=0.5")) for rows in (20_000, 200_000)}
    for rows, run in [*runs.items(), *runs.items()]:  # only the second time counts
        started = time.perf_counter()
        run(steps)
        seconds[rows] = (time.perf_counter() - started) / steps
    print(f"lff on 200,000 rows: a step takes {seconds[200_000] / seconds[20_000]:.2f} times that on 20,000 rows")


if __name__ == "__main__":
    main()
