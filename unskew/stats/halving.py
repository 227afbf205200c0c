r"""Successive halving under a budget of time: many candidates are trained briefly, the better half for twice as long, and so on.

.. math::
    n_k = \lceil n / 2^k \rceil \ \text{candidates for the share}\ f_k = 2^{k - 2}\ \text{of their steps}, \qquad k = 0, 1, 2

Every rung costs about as much as the one before. What a candidate cost in a rung says what it would cost in the next, and at the
end: as long as the budget holds, none of this changes what is chosen.
"""

import math
from collections.abc import Mapping, Sequence

SHARES = (0.25, 0.5, 1.0)  # of a candidate's steps, by rung


def survivors(n: int, rung: int) -> int:
    """Candidates of a rung, of `n` in the first.

    >>> [survivors(7, k) for k in range(3)]
    [7, 4, 2]
    """
    return max(1, -(-n // (1 << rung)))


def ranked(scores: Mapping[str, tuple[float, float]], order: Sequence[str]) -> list[str]:
    """Candidates by their score, the best first; equal ones by the second figure, then as listed. A NaN is worst.

    >>> ranked({"pgd": (0.5, 0.7), "erm": (0.2, 0.9), "jtt": (0.5, 0.8)}, ["erm", "jtt", "pgd"])
    ['jtt', 'pgd', 'erm']
    """

    def key(name: str) -> tuple[float, float, int]:
        first, second = (-math.inf if math.isnan(v) else v for v in scores[name])
        return -first, -second, order.index(name)

    return sorted(scores, key=key)


def makespan(seconds: Sequence[float], workers: int) -> float:
    """Time until jobs that start in this order are done, so many side by side.

    >>> makespan([3.0, 1.0, 1.0], 1), makespan([3.0, 1.0, 1.0], 2)
    (5.0, 3.0)
    """
    free = [0.0] * max(1, workers)
    for one in seconds:
        first = free.index(min(free))
        free[first] += one
    return max(free)


def that_fit(seconds: Sequence[float], reserve: float, left: float, workers: int) -> int:
    """How many of these jobs, from the first on, leave the reserve of the time that is left.

    >>> that_fit([10.0, 10.0, 10.0], reserve=15.0, left=40.0, workers=1)
    2
    """
    return max((k for k in range(len(seconds) + 1) if makespan(seconds[:k], workers) + reserve <= left), default=0)
