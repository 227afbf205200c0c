"""An epoch of REPAIR against the dense autograd form, PGD's scores against an evaluation pass, and memory for a million rows.

python benchmarks/repair_speed.py
"""

import resource
import time

import torch
import torch.nn.functional as F

from unskew.core.rng import stream
from unskew.data import load
from unskew.data.loader import rows_in_order
from unskew.features import compute, spec
from unskew.repairs import gradient_probabilities
from unskew.repairs.gradients import BATCH
from unskew.repairs.repair import Game
from unskew.training.make import make_method


def main() -> None:
    data = load("colored-mnist:protocol=repair,seed=0")
    index, features = compute(data, [spec("color:kind=max")], torch.cat([data.rows("train"), data.rows("test_biased")]))
    z, y = features["color:kind=max"], data.y[index]
    game = Game(z, y, 1e-3, 0.9, 10.0, 0)
    game.epoch(128, stream(0, "repair", 0))  # warm up
    ratios = []
    for _ in range(3):
        started = time.perf_counter()
        game.epoch(128, stream(0, "repair", 1))
        ours = time.perf_counter() - started
        dense = dense_epoch(z, y)
        ratios.append(dense / ours)
        print(f"REPAIR epoch, {len(y)} rows, batch 128: {ours:.2f} s, dense {dense:.2f} s, ratio {dense / ours:.1f}", flush=True)
    scores()
    memory()


def dense_epoch(z, y, batch=128):
    """The released code's step over all rows by autograd, with features in memory."""
    estimator = torch.nn.Linear(z.shape[1], 10)
    omega = torch.zeros(len(y), requires_grad=True)
    first = torch.optim.SGD(estimator.parameters(), lr=1e-3, momentum=0.9)
    second = torch.optim.SGD([omega], lr=10.0)
    onehot = F.one_hot(y, 10).T.float()
    order = torch.randperm(len(y))
    started = time.perf_counter()
    for rows in torch.split(order, batch):
        w = omega.sigmoid()
        share = w / w.mean()
        prior = onehot @ w / w.sum()
        risk = (share[rows] * F.cross_entropy(estimator(z[rows]), y[rows], reduction="none")).mean()
        entropy = -(share[rows] * prior[y[rows]].log()).mean()
        first.zero_grad()
        second.zero_grad()
        risk.backward(retain_graph=True)
        (omega.grad,) = torch.autograd.grad(1 - risk / entropy, [omega])
        first.step()
        second.step()
    return time.perf_counter() - started


def scores():
    data = load("colored-mnist:ratio=0.99")
    model = make_method("erm", {}, "convnet1", {}, data, 0).eval().model
    rows = data.rows("train")
    for _ in range(3):
        started = time.perf_counter()
        with torch.inference_mode():
            for _, x in rows_in_order(data, rows, BATCH):
                model(x)
        plain = time.perf_counter() - started
        started = time.perf_counter()
        gradient_probabilities(model, data, rows)
        scored = time.perf_counter() - started
        print(f"scores of {len(rows)} rows: {scored:.2f} s, plain pass {plain:.2f} s, ratio {scored / plain:.2f}", flush=True)


def memory():
    """A million generated rows of 32 numbers through a network with 64 features: what scoring adds to the data."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(1_000_000, 32, generator=generator), torch.randint(0, 10, (1_000_000,), generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).eval()
    before = resident()
    reset_peak()
    started = time.perf_counter()
    gradient_probabilities(model, (x, y))
    print(f"a million rows: {time.perf_counter() - started:.1f} s, {(peak() - before) / 1e9:.2f} GB beyond the data")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
