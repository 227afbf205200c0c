"""digits: scikit-learn's pictures, enlarged and otherwise unchanged, split once and for all."""

import numpy as np
import torch
from sklearn.datasets import load_digits

from unskew.data import load


def test_they_are_those_of_scikit_learn_enlarged():
    images, labels = load_digits(return_X_y=True)
    data = load("digits")
    assert data.shape == (1, 28, 28)
    # Bilinear by hand: pixel i of 28 lies at (i + 1/2) 10 / 28 - 1/2 among ten, of which the first and the last are the margin.
    place = np.clip((np.arange(28) + 0.5) * 10 / 28 - 0.5, 0, 9)
    weights = np.maximum(0, 1 - np.abs(place[:, None] - np.arange(10)))  # (28, 10)
    margin = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    large = torch.from_numpy(weights @ margin @ weights.T / 16 * 255).flatten(1)
    ours = data.inputs.x.flatten(1).double()
    same = torch.cdist(ours, large).argmin(1)
    assert len(set(same.tolist())) == len(data) == 1797  # each of them once
    assert (ours - large[same]).abs().max() < 0.51
    assert torch.equal(torch.from_numpy(labels)[same], data.y)


def test_a_fifth_of_every_class_tests():
    data = load("digits")
    test = data.y[data.rows("test")].bincount()
    assert test.tolist() == [int(n) // 5 for n in data.y.bincount()]
    rest = len(data) - int(test.sum())
    assert [len(data.rows(s)) for s in ("train", "val")] == [rest * 9 // 10, rest - rest * 9 // 10]
