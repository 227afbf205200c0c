"""The two forms of REPAIR on 70,000 coloured digits: their weights after 200 epochs, and the bias these leave.

python -m benchmarks repair_forms [--epochs 200]
"""

import argparse

import torch

from benchmarks._registry import Figure
from unskew.core.rng import stream
from unskew.data import load
from unskew.features import compute, spec
from unskew.measure import representation_bias
from unskew.repairs.repair import Game, LargeGame


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--epochs", type=int, default=200)
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    data = load("colored-mnist:protocol=repair,seed=0")
    index, found = compute(data, [spec("color:kind=max")], torch.cat([data.rows("train"), data.rows("test_biased")]))
    z, y = found["color:kind=max"], data.y[index]
    weights = []
    for form in (Game, LargeGame):
        game = form(z, y, 1e-3, 0.9, 10.0, 0)
        for epoch in range(given.epochs):
            game.epoch(128, stream(0, "repair", epoch))
        weights.append(game.weights().double())
    left = [representation_bias(z, y, w, permutations=0, bootstrap=0).bias for w in weights]
    same = float(torch.corrcoef(torch.stack(weights))[0, 1])
    more = {
        "largest difference": float((weights[0] - weights[1]).abs().max()),
        "bias left": left,
        "difference of bias": abs(left[0] - left[1]),
        "epochs": given.epochs,
    }
    what = f"correlation of the weights of REPAIR's two forms, 70,000 rows, {given.epochs} epochs"
    yield Figure("REPAIR, two forms", what, None, least=0.999, value=same, more=more)
    what = "the difference of the bias that they leave"
    yield Figure("REPAIR, two forms: bias", what, None, most=0.01, value=abs(left[0] - left[1]))
