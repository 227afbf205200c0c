"""Five attackers as one batched model against one after another: ratio of times in one run, and equal results.

python -m benchmarks leakage_rounds
"""

import torch

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.measure import Attack, dataset_leakage


def figures(words):
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 2, (12_000,), generator=g)
    labels = (torch.rand(12_000, 79, generator=g) < 0.1 + 0.1 * a[:, None] * (torch.arange(79) < 10)).float()
    torch.set_num_threads(1)
    values = {}

    def run(together):
        values[together] = dataset_leakage(labels, a, attack=Attack(together=together, epochs=3, min_steps=0)).rounds

    times = in_turn({"together": lambda: run(True), "apart": lambda: run(False)}, 2)
    worst = max(abs(p - q) for p, q in zip(values[True], values[False], strict=True))
    more = {name: median(t) for name, t in times.items()} | {"largest difference of an accuracy": worst}
    what = "five attackers one after another over the five as one batched model"
    yield Figure("leakage", what, ratio(times["apart"], times["together"]), least=2.0, more=more)
