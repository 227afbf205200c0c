r"""Learning curve: what more rows of one kind would gain, from how the error fell when there were fewer.

.. math::  e(n) = a\, n^{-b}, \qquad e(n + m) = e(n)\, \Big(\frac{n + m}{n}\Big)^{-b}

The exponent b is the slope of log e over log n, by least squares; never below 0, since more rows of a kind do not make a reader
worse at it except by chance. Undefined (NaN) with fewer than two different n, or where there is no error to lose.

Source: Hestness et al., "Deep learning scaling is predictable, empirically", 2017 (the power law); Figueroa et al., "Predicting
sample size required for classification performance", BMC Medical Informatics 2012.
Differs: no constant that the error cannot fall below, which takes more points than a small set has; the prediction is meant for
about twice the rows, not for ten times as many.
"""

import math
from collections.abc import Sequence

from unskew.core.errors import UserError


def exponent(rows: Sequence[float], error: Sequence[float]) -> float:
    """The exponent b of errors seen with these numbers of rows.

    >>> round(exponent([10, 20, 40], [0.4, 0.2, 0.1]), 6)
    1.0
    """
    if len(rows) != len(error):
        raise UserError(f"learning curve: {len(rows)} numbers of rows and {len(error)} errors: must be as many")
    points = [(math.log(n), math.log(e)) for n, e in zip(rows, error, strict=True) if n > 0 and e > 0]
    if len({n for n, _ in points}) < 2:
        return math.nan
    across = sum(n for n, _ in points) / len(points)
    up = sum(e for _, e in points) / len(points)
    slope = sum((n - across) * (e - up) for n, e in points) / sum((n - across) ** 2 for n, _ in points)
    return max(0.0, -slope)


def expected_error(error: float, rows: int, more: int, b: float) -> float:
    """The error to expect with `more` rows beside the `rows` that gave `error`.

    >>> expected_error(0.4, 10, 10, 1.0)
    0.2
    """
    return error * ((rows + more) / rows) ** -b if rows else math.nan


FUNCTIONS = (expected_error, exponent)
RANGE = (0.0, 1.0)
HIGHER = "more errors remain after collecting"
