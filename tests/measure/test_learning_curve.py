import math

import numpy as np
import pytest

from unskew.core.errors import UserError
from unskew.measure.learning_curve import expected_error, exponent


def test_the_exponent_is_the_slope_of_a_straight_line_in_logarithms():
    rows, error = [12, 30, 61, 200], [0.5, 0.31, 0.3, 0.11]
    slope = np.polyfit(np.log(rows), np.log(error), 1)[0]
    assert exponent(rows, error) == pytest.approx(-slope)


def test_an_error_that_rises_counts_as_flat():
    assert exponent([10, 20], [0.2, 0.3]) == 0
    assert expected_error(0.2, 10, 90, 0.0) == 0.2


def test_a_power_law_predicts_itself():
    errors = [2 * n**-0.35 for n in (20, 40, 80, 160)]
    b = exponent([20, 40, 80], errors[:3])
    assert expected_error(errors[2], 80, 80, b) == pytest.approx(errors[3])


def test_undefined_without_two_points_or_without_errors():
    assert math.isnan(exponent([10, 10], [0.2, 0.3]))
    assert math.isnan(exponent([10, 20], [0.2, 0.0]))
    assert math.isnan(expected_error(0.5, 0, 10, 1.0))
    with pytest.raises(UserError, match="must be as many"):
        exponent([1, 2], [0.1])
