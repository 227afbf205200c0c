"""One round of AFLite: all classifiers fitted together, against one scikit-learn fit after another on the same rows.

python -m benchmarks aflite_rounds [--rows 10000] [--models 64]
"""

import argparse
import time
import warnings

import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from benchmarks._registry import Figure
from benchmarks.repair_speed import peak, reset_peak, resident
from unskew.core.rng import stream
from unskew.data import load
from unskew.features import compute, spec
from unskew.repairs._contract import unit_columns
from unskew.repairs.aflite import predictability


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=10_000)
    asked.add_argument("--models", type=int, default=64)
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    data = load("colored-mnist:ratio=0.99")
    name = "layer:model=convnet1"
    index, found = compute(data, [spec(name)], data.rows("train")[: given.rows])
    features, y = unit_columns(found[name]), data.y[index]
    x = torch.cat([features.new_ones(len(features), 1), features], 1)
    started = time.process_time()
    ours = predictability(x, y, given.models, 0.5, None, stream(0, "aflite", 0))
    together = time.process_time() - started
    started = time.process_time()
    theirs = one_after_another(features.numpy(), y.numpy(), given.models, stream(0, "aflite", 0))
    apart = time.process_time() - started
    more = {"ours (s)": together, "scikit-learn (s)": apart, "Spearman of the scores": float(spearmanr(ours, theirs).statistic)}
    what = f"a round of AFLite, {given.rows:,} x {features.shape[1]}, {given.models} classifiers: scikit-learn's fits over ours"
    yield Figure("AFLite", what, apart / together, more=more)
    yield growth()


def growth():
    """A round on 200,000 and on 2,000,000 rows of 16 numbers, 16 classifiers: time, and memory beyond the features."""
    seconds, beyond = {}, {}
    for rows in (200_000, 2_000_000):
        g = torch.Generator().manual_seed(0)
        y = torch.randint(0, 4, (rows,), generator=g)
        x = torch.cat([torch.ones(rows, 1), torch.randn(rows, 16, generator=g) + 0.3 * y[:, None]], 1)
        reset_peak()
        before, started = resident(), time.process_time()
        predictability(x, y, 16, 0.5, None, stream(0, "aflite", 0))
        seconds[rows], beyond[rows] = time.process_time() - started, (peak() - before) / 1e9
    more = {"seconds": seconds, "GB beyond the features": beyond}
    what = "a round of AFLite on 2,000,000 rows over one on 200,000 (16 numbers, 16 classifiers): at most as the rows"
    return Figure("AFLite, ten times the rows", what, seconds[2_000_000] / seconds[200_000], most=10.0, more=more)


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
