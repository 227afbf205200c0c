"""What a training step of each joint method costs, as a ratio to a step of erm with the same network, in one run.

python -m benchmarks step_cost [--model convnet1] [--rounds 8]

Methods take turns, so that a noisy machine affects all alike; the figure is the median ratio over the rounds. The same steps on a
set ten times as large show that the cost does not grow with the data.
"""

import argparse

import torch

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.core.engine import Engine
from unskew.data import load
from unskew.data.augment import Augment
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


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--model", default="convnet1")
    asked.add_argument("--rounds", type=int, default=8)
    asked.add_argument("--steps", type=int, default=10)
    given = asked.parse_args(words)
    data = load("colored-mnist:ratio=0.99")
    made = {name: prepared(name, settings, given.model, data) for name, settings in METHODS.items()}
    made["g alone"] = prepared("erm", {}, "rebias-conv", data, {"kernel": "1", "channels": "4,4,4,8"})
    times = in_turn({name: lambda run=run: run(given.steps) for name, run in made.items()}, given.rounds)
    for name, seconds in times.items():
        if name != "erm":
            more = {"erm (ms)": 1000 * median(times["erm"]) / given.steps, "step (ms)": 1000 * median(seconds) / given.steps}
            yield Figure(
                f"{name}, {given.model}",
                f"a step of {name} over one of erm, {given.model}",
                ratio(seconds, times["erm"]),
                more=more,
            )
    yield growth(given.steps * given.rounds)


def prepared(name, settings, model, data, model_settings=None, change=None, weights=None):
    method = make_method(name, settings, model, model_settings or {}, data, 0)
    optimizers = {n: torch.optim.SGD(p, lr=1e-3, momentum=0.9) for n, p in method.parameter_sets().items()}
    for optimizer in optimizers.values():
        optimizer.param_groups[0]["initial_lr"] = 1e-3
    loader = Loader(data, Sampler(data.rows("train"), 256, 0, weights), method.sees, change=change or Augment())
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
    runs = {rows: prepared("lff", {}, "mlp", load(f"planted:rows={rows},bias=0.5")) for rows in (20_000, 200_000)}
    times = in_turn({str(rows): lambda run=run: run(steps) for rows, run in runs.items()}, 3)
    return Figure(
        "lff, ten times the rows", "a step of lff on 200,000 rows over one on 20,000", ratio(times["200000"], times["20000"])
    )
