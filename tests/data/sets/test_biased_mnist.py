"""Biased MNIST: exact counts, black and white digits, the palette of the grounds."""

import math

import torch

from tests.support.sets import source
from unskew.data import load
from unskew.data.colour import REBIAS


def test_biased_mnist_counts_binary_digits_and_palette():
    data = load(source("biased-mnist", "ratio=0.9"))
    train = data.rows("train")
    for c in range(10):
        colours = data.bias[train][data.y[train] == c, 0]
        assert int((colours == c).sum()) == int(len(colours) * 0.9)
        rest = len(colours) - int(len(colours) * 0.9)
        others = colours[colours != c].bincount(minlength=10)
        assert int(others.max()) == math.ceil(rest / 9)
    x, grey = data.inputs.x[train[:40]], load("digits").inputs.x[:40, 0]
    for k in range(40):
        background = torch.tensor(REBIAS[int(data.bias[train[k], 0])], dtype=torch.uint8)
        assert (x[k][:, grey[k] == 0] == background[:, None]).all()
        assert (x[k][:, grey[k] > 0] == 255).all()
    assert (data.bias[data.rows("test_biased"), 0] == data.y[data.rows("test_biased")]).all()
    assert (data.bias[data.rows("test_rho0"), 0] != data.y[data.rows("test_rho0")]).all()
