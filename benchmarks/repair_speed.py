"""An epoch of REPAIR against the dense autograd form, PGD's scores against an evaluation pass, and memory for a million rows.

python -m benchmarks repair_speed
"""

import resource
import time

import torch
import torch.nn.functional as F

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.core.rng import stream
from unskew.data import load
from unskew.data.loader import rows_in_order
from unskew.features import compute, spec
from unskew.repairs import gradient_probabilities
from unskew.repairs.gradients import BATCH
from unskew.repairs.repair import Game
from unskew.training.make import make_method


def figures(words):
    torch.set_num_threads(1)
    data = load("colored-mnist:protocol=repair,seed=0")
    index, features = compute(data, [spec("color:kind=max")], torch.cat([data.rows("train"), data.rows("test_biased")]))
    z, y = features["color:kind=max"], data.y[index]
    game = Game(z, y, 1e-3, 0.9, 10.0, 0)
    forms = {"ours": lambda: game.epoch(128, stream(0, "repair", 1)), "dense": lambda: dense_epoch(z, y)}
    times = in_turn(forms, 3)
    what = f"an epoch of REPAIR, {len(y):,} rows, batch 128: the dense form by autograd over ours"
    more = {name: median(t) for name, t in times.items()}
    yield Figure("REPAIR, an epoch", what, ratio(times["dense"], times["ours"]), least=3.0, more=more)
    yield scores()
    yield memory()


def dense_epoch(z, y, batch=128):
    """The released code's step over all rows by autograd, with features in memory."""
    estimator = torch.nn.Linear(z.shape[1], 10)
    omega = torch.zeros(len(y), requires_grad=True)
    first = torch.optim.SGD(estimator.parameters(), lr=1e-3, momentum=0.9)
    second = torch.optim.SGD([omega], lr=10.0)
    onehot = F.one_hot(y, 10).T.float()
    order = torch.randperm(len(y))
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


def scores():
    data = load("colored-mnist:ratio=0.99")
    model = make_method("erm", {}, "convnet1", {}, data, 0).eval().model
    rows = data.rows("train")

    @torch.inference_mode()
    def plain():
        for _, x in rows_in_order(data, rows, BATCH):
            model(x)

    times = in_turn({"plain": plain, "scores": lambda: gradient_probabilities(model, data, rows)}, 3)
    what = f"gradient scores of {len(rows):,} rows over a plain pass of the network"
    return Figure(
        "PGD's scores", what, ratio(times["scores"], times["plain"]), more={name: median(t) for name, t in times.items()}
    )


def memory():
    """A million generated rows of 32 numbers through a network with 64 features: what scoring adds to the data."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(1_000_000, 32, generator=generator), torch.randint(0, 10, (1_000_000,), generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).eval()
    before = resident()
    reset_peak()
    started = time.process_time()
    gradient_probabilities(model, (x, y))
    seconds = time.process_time() - started
    what = "gradient scores of a million rows: memory beyond the data"
    return Figure(
        "PGD's scores, memory", what, None, value=round((peak() - before) / 1e9, 3), unit="GB", more={"seconds": seconds}
    )


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))
