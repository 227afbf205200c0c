"""Bias dependency of an accuracy that is known for every subset, by hand."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure import bias_dependency
from unskew.measure.bias_dependency import beta_of, check_rates


def test_bias_dependency_by_hand():
    y = torch.tensor([0] * 8 + [1] * 8)
    weights = torch.tensor([float(k % 8) for k in range(16)])
    seen = []

    def accuracy(rows):
        seen.append(rows)
        return 0.9 if bool((weights[rows] >= 6).all()) else 0.95 + 0.01 * len(rows) / 16

    found = bias_dependency(accuracy, weights, y)
    # Repaired subsets keep the top quarter, half and three quarters of each class; only the first is all of weight 6 and 7.
    assert found.repaired == pytest.approx((0.9, 0.955, 0.9575))
    assert [len(r) for r in seen] == [4, 8, 12] * 2
    assert all(y[r].bincount().tolist() == [len(r) // 2] * 2 for r in seen)
    assert found.beta == pytest.approx(sum(a - b for a, b in zip(found.random, found.repaired, strict=True)) / 3)
    with pytest.raises(UserError, match="keep rates"):
        bias_dependency(accuracy, weights, y, rates=(1.0,))


def test_all_rows_are_on_the_curve_but_not_in_beta():
    found = beta_of({("random", 0.5): 0.9, ("random", 1.0): 0.95, ("repaired", 0.5): 0.7, ("repaired", 1.0): 0.95})
    assert found.beta == pytest.approx(0.2)
    assert found.repaired == (0.7, 0.95)
    with pytest.raises(UserError, match="one must be below 1"):
        check_rates([1.0])
