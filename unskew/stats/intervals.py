"""Intervals for proportions and for means of proportions."""

import math
from collections.abc import Sequence

Z95 = 1.959963984540054  # the 97.5 % point of the standard normal


def wilson(correct: float, n: int, z: float = Z95) -> tuple[float, float]:
    r"""Wilson's score interval of a proportion; (NaN, NaN) without rows.

    .. math::  \frac{\hat p + z^2/2n \pm z \sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if n == 0:
        return math.nan, math.nan
    p = correct / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(max(p * (1 - p), 0.0) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At p = 0 and p = 1 one end is exactly 0 or 1; rounding must not change it.
    low = 0.0 if correct == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if correct == n else min(1.0, (centre + spread) / scale)
    return low, high


def mean_of_proportions(correct: Sequence[float], n: Sequence[int], z: float = Z95) -> tuple[float, float, float]:
    r"""The plain mean of several independent proportions, with its interval.

    .. math::  \bar p = \frac1K \sum_k \hat p_k, \qquad
               \bar p \pm z \, \frac1K \sqrt{\textstyle\sum_k \tilde p_k (1 - \tilde p_k) / n_k},
               \qquad \tilde p_k = \frac{c_k + 1}{n_k + 2}

    The variance uses the shrunk proportion, so that an all-correct group does not claim certainty. Clipped to [0, 1].

    >>> mean_of_proportions([1, 1], [2, 2])[0]
    0.5
    """
    if not n or min(n) == 0:
        return math.nan, math.nan, math.nan
    k = len(n)
    mean = sum(c / m for c, m in zip(correct, n, strict=True)) / k
    shrunk = [(c + 1) / (m + 2) for c, m in zip(correct, n, strict=True)]
    error = z * math.sqrt(sum(p * (1 - p) / m for p, m in zip(shrunk, n, strict=True))) / k
    return mean, max(0.0, mean - error), min(1.0, mean + error)


def newcombe(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    r"""The difference of two independent figures, each (value, low, high), with Newcombe's interval from their own intervals.

    .. math::  \hat a - \hat b \ -\ \sqrt{(\hat a - l_a)^2 + (u_b - \hat b)^2}\ ,\quad
               \hat a - \hat b \ +\ \sqrt{(u_a - \hat a)^2 + (\hat b - l_b)^2}

    >>> [round(v, 4) for v in newcombe((56 / 70, *wilson(56, 70)), (48 / 80, *wilson(48, 80)))]  # Newcombe 1998, table II
    [0.2, 0.0524, 0.3339]
    """
    (va, la, ua), (vb, lb, ub) = a, b
    gap = va - vb
    return gap, gap - math.hypot(va - la, ub - vb), gap + math.hypot(ua - va, vb - lb)


def paired_difference(first: int, second: int, n: int, z: float = Z95) -> tuple[float, float, float]:
    r"""The difference of two proportions of the same n rows, with the interval of Agresti and Min.

    .. math::  \frac{b^* - c^*}{n^*} \pm z\, \frac{\sqrt{b^* + c^* - (b^* - c^*)^2 / n^*}}{n^*}, \qquad
               b^* = b + \tfrac12, \quad c^* = c + \tfrac12, \quad n^* = n + 2

    b rows are in the first only and c in the second only. The value is (b - c) / n; clipped to [-1, 1].

    >>> [round(v, 4) for v in paired_difference(9, 3, 100)]
    [0.06, -0.0095, 0.1272]
    """
    if n == 0:
        return math.nan, math.nan, math.nan
    b, c, m = first + 0.5, second + 0.5, n + 2
    error = z * math.sqrt(b + c - (b - c) ** 2 / m) / m
    return (first - second) / n, max(-1.0, (b - c) / m - error), min(1.0, (b - c) / m + error)
