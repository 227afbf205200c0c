"""A step of rebias over a step of erm with the same network, through the training loop: kernel-7 rebias-conv, and convnet1.

python -m benchmarks rebias_step [--rounds 5] [--steps 4] [--only convnet1]

Biased MNIST, batch 256, one thread, the default g (1x1 convolutions) for rebias-conv and a narrow one for convnet1, as before.
"""

import argparse

import torch

from benchmarks._registry import Figure, in_turn, median, ratio
from benchmarks.step_cost import prepared
from unskew.data import load

NARROW = {"g.model": "rebias-conv", "g.kernel": "1", "g.channels": "4,4,4,8"}
CASES = {"rebias-conv": ({}, 1, 1.2), "convnet1": (NARROW, 10, 2.7)}


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--only", default="")
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    data = load("biased-mnist:ratio=0.99")
    for model, (settings, steps, most) in CASES.items():
        if given.only in ("", model):
            runs = {name: prepared(name, s, model, data) for name, s in (("erm", {}), ("rebias", settings))}
            times = in_turn({name: lambda run=run, n=steps: run(n) for name, run in runs.items()}, given.rounds)
            more = {name: median([t / steps for t in seconds]) for name, seconds in times.items()}
            yield Figure(f"rebias, {model}", f"a step of rebias over one of erm, {model}, batch 256", ratio(times["rebias"], times["erm"]),
                         most=most, more=more)  # fmt: skip
