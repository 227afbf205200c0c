"""What pgd costs over erm, from the time of its steps: weighted drawing in the final stage, the scores, and the biased stage.

python -m benchmarks pgd_cost [--rounds 4] [--steps 10]

Colored MNIST, convnet1, batch 256, one thread. The paper's budget is 100 epochs; the biased stage is ten with patience. The scores are
one pass over the rows. The paper augments erm as well as pgd's final model (appendix C), and so do the suites: erm is augmented here,
the biased stage is not. The total is made up from the parts; no training is run to its end.
"""

import argparse

import torch

from benchmarks._registry import Figure, in_turn, median, ratio
from benchmarks.step_cost import prepared
from unskew.data import load
from unskew.data.augment import augment, preset
from unskew.repairs import gradient_probabilities
from unskew.training.make import make_method

EPOCHS, BIASED = 100, 10


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=4)
    asked.add_argument("--steps", type=int, default=10)
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    data = load("colored-mnist:protocol=pgd,ratio=0.99")
    rows = data.rows("train")
    model = make_method("erm", {}, "convnet1", {}, data, 0).eval().model
    runs = {name: prepared(method, {}, "convnet1", data) for name, method in (("erm", "erm"), ("gce", "gce"))}
    runs["augmented"] = prepared("erm", {}, "convnet1", data, change=preset("pgd"))
    runs["drawn"] = prepared(
        "erm", {}, "convnet1", data, change=preset("pgd"), weights=torch.rand(len(rows), dtype=torch.float64)
    )
    forms = {name: lambda run=run: run(given.steps) for name, run in runs.items()}
    forms["augmentation"] = lambda: [warp(data, rows, step) for step in range(given.steps)]
    forms["scores"] = lambda: gradient_probabilities(model, data, rows[:2560])
    times = in_turn(forms, given.rounds)
    parts = {name: ratio(times[name], times["augmented"]) for name in ("erm", "drawn", "gce", "augmentation")}
    # One pass over the rows, as a share of erm's training.
    passes = ratio(times["scores"], times["augmented"]) * given.steps / 10 / EPOCHS
    total = parts["drawn"] + BIASED / EPOCHS * parts["gce"] + passes
    more = {"erm, augmented (ms a step)": round(1000 * median(times["augmented"]) / given.steps, 2)}
    more |= {f"{'erm, plain' if k == 'erm' else k} over erm": round(v, 3) for k, v in parts.items()}
    more |= {"scores over a training of erm": round(passes, 4)}
    what = f"pgd over erm at {EPOCHS} epochs with a biased stage of {BIASED}, made up from the time of its steps"
    yield Figure("pgd, from its parts", what, total, most=1.15, more=more)


def warp(data, rows, step):
    x = data.inputs.rows(rows[:256])[0].float().div_(255)
    return augment(x, preset("pgd"), 0, step, 256, slice(None))
