"""The toy: both numbers tell the class in training, in the test only the signal does."""

import pytest
import torch
from scipy.stats import binomtest

from unskew.core.errors import UserError
from unskew.data import load


def test_clusters_lie_where_the_formula_says():
    data = load("toy:rows=20000,width_bias=0.1,width_signal=0.3,scale=5")
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [20_000, 2_000, 20_000]
    left = data.inputs.x - torch.stack([5 * (data.bias[:, 0] - 1), data.y - 1], 1)  # noise alone
    assert left.mean(0).abs().max() < 0.02
    assert left.std(0).tolist() == pytest.approx([5 * 0.1, 0.3], rel=0.02)
    assert float(torch.corrcoef(left.T)[0, 1]) == pytest.approx(0, abs=0.02)


def test_bias_and_class_agree_in_training_and_by_chance_in_the_test():
    data = load("toy:rows=3000")
    agrees = data.bias[:, 0] == data.y
    assert agrees[data.rows("train")].all()
    assert agrees[data.rows("val")].all()
    test = data.rows("test")
    assert binomtest(int(agrees[test].sum()), len(test), 1 / 3).pvalue > 0.001
    with pytest.raises(UserError, match="must be at least 30"):
        load("toy:rows=29")
    with pytest.raises(UserError, match="must not be negative"):
        load("toy:scale=-1")
