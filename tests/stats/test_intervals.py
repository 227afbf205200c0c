"""Wilson's interval against SciPy, and the interval of a mean of proportions by hand."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given
from scipy.stats import binomtest

from unskew.stats.intervals import mean_of_proportions, wilson


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_is_scipys(correct, n):
    correct = min(correct, n)
    expected = binomtest(correct, n).proportion_ci(method="wilson")
    assert wilson(correct, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_mean_of_proportions_by_hand():
    # 3/4 and 1/2; shrunk 4/6 and 2/4 give the variances (4/6)(2/6)/4 and (2/4)(2/4)/2.
    error = 1.959963984540054 * math.sqrt(8 / 36 / 4 + 0.25 / 2) / 2
    assert mean_of_proportions([3, 1], [4, 2]) == pytest.approx((0.625, max(0, 0.625 - error), min(1, 0.625 + error)))
