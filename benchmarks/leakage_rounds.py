"""Five attackers as one batched model against one after another: ratio of times in one run, and equal results.

python benchmarks/leakage_rounds.py
"""

import time

import torch

from unskew.measure import Attack, dataset_leakage


def main() -> None:
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 2, (12_000,), generator=g)
    labels = (torch.rand(12_000, 79, generator=g) < 0.1 + 0.1 * a[:, None] * (torch.arange(79) < 10)).float()
    attack = {"epochs": 3, "min_steps": 0}
    times, values = {}, {}
    for together in (True, False, True, False):
        started = time.perf_counter()
        values[together] = dataset_leakage(labels, a, attack=Attack(together=together, **attack)).rounds
        times.setdefault(together, []).append(time.perf_counter() - started)
    worst = max(abs(p - q) for p, q in zip(values[True], values[False], strict=True))
    ratio = min(times[False]) / min(times[True])
    print(
        f"one after another {min(times[False]):.2f} s, together {min(times[True]):.2f} s: {ratio:.2f} times faster; must be at least 2"
    )
    print(f"largest difference of a round's accuracy: {worst:.4f}")


if __name__ == "__main__":
    main()
