"""One round of AFLite: all classifiers fitted together, against one scikit-learn fit after another on the same rows.

python benchmarks/aflite_rounds.py [--rows 10000] [--models 64]
"""

import argparse
import time
import warnings

import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from unskew.core.rng import stream
from unskew.data import load
from unskew.features import compute, spec
from unskew.repairs._contract import unit_columns
from unskew.repairs.aflite import predictability


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", type=int, default=10_000)
    words.add_argument("--models", type=int, default=64)
    given = words.parse_args()
    data = load("colored-mnist:ratio=0.99")
    name = "layer:model=convnet1"
    index, found = compute(data, [spec(name)], data.rows("train")[: given.rows])
    features, y = unit_columns(found[name]), data.y[index]
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    started = time.perf_counter()
    ours = predictability(x, y, given.models, 0.5, None, stream(0, "aflite", 0))
    together = time.perf_counter() - started
    started = time.perf_counter()
    theirs = one_after_another(features.numpy(), y.numpy(), given.models, stream(0, "aflite", 0))
    apart = time.perf_counter() - started
    print(
        f"{given.rows} rows, {features.shape[1]} features, {given.models} classifiers: together {together:.1f} s, apart {apart:.1f} s"
    )
    print(f"ratio {apart / together:.1f}, Spearman of the scores {spearmanr(ours, theirs).statistic:.4f}")


def one_after_another(x, y, models, generator):
    right, held = torch.zeros(len(y)), torch.zeros(len(y))
    size = round(0.5 * len(y))
    for _ in range(models):
        inside = torch.randperm(len(y), generator=generator).numpy() < size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = LogisticRegression().fit(x[inside], y[inside])
        right += torch.from_numpy((fitted.predict(x) == y) & ~inside)
        held += torch.from_numpy(~inside)
    return right / held.clamp(min=1)


if __name__ == "__main__":
    main()
