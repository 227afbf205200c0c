"""A small data set, and one plain step of a method to compare with."""

import torch

from unskew.data import load
from unskew.data.dataset import DataSet, Memory
from unskew.records import Batch
from unskew.training.make import make_method

G = {"g.model": "mlp", "g.hidden": "6", "g.inputs": "1"}


def toy(n=64, seed=0, dtype=torch.float64, missing_class=False):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    if missing_class:
        y = y.clamp(max=1)
    bias = torch.where(torch.rand(n, generator=g) < 0.9, y, torch.randint(0, 3, (n,), generator=g))
    noise = torch.randn(n, 2, generator=g, dtype=dtype)
    x = torch.stack([y, bias], 1) + noise * torch.tensor([0.8, 0.2])  # the shortcut is the cleaner feature
    names = ("0", "1", "2")
    return DataSet(
        name="toy", inputs=Memory(x.to(dtype)), y=y, classes=names, split=torch.zeros(n, dtype=torch.long),
        bias=bias[:, None], bias_names=("b",), bias_values=(names,), aligned_by_design=(torch.eye(3).bool(),),
    )  # fmt: skip


def make(name, settings=None, data=None, model="mlp", **model_settings):
    return make_method(name, settings or {}, model, model_settings or {"hidden": "8"}, data or toy(), 0).double()


def batch_of(method, rows=12, data=None):
    data = data or toy()
    index = torch.arange(rows)
    columns = {"index": index, "x": data.inputs.x[:rows], "y": data.y[:rows]}
    if "bias" in method.sees:
        columns |= {"bias": data.bias[:rows], "group": data.group[:rows]}
    return Batch(**columns)


def sgd_step(method, batch, lr=0.1):
    """One step of the method, each optimiser plain SGD: what the loop does without momentum."""
    sets = {name: torch.optim.SGD(p, lr=lr) for name, p in method.parameter_sets().items()}

    def update(batch, part="", optimizers=None):
        method.zero_grad(set_to_none=True)
        terms = method(batch.columns(), part)
        sum(terms.values()).backward()
        for name in optimizers if optimizers is not None else sets:
            sets[name].step()
        return {k: v.detach() for k, v in terms.items()}

    method.train()
    return method.step(batch, update)


def descend(loss, parameters, lr=0.1):
    parameters = list(parameters)
    for p, g in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        if g is not None:
            with torch.no_grad():
                p -= lr * g


def same(a, b):
    for (k, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11, msg=k)


def features(net, x):
    return net.blocks(x)


def images(n=40):
    data = load("colored-mnist:base=digits,ratio=0.9")
    rows = data.rows("train")[:n]
    return data, rows
