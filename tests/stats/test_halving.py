"""Successive halving: how many go on, in which order, and what fits a budget, by hand and by trying everything."""

import math
from itertools import pairwise, product

import pytest

from unskew.stats.halving import SHARES, makespan, ranked, survivors, that_fit


def test_every_rung_costs_about_as_much_as_the_one_before():
    for n in (1, 2, 3, 7, 8, 20):
        counts = [survivors(n, k) for k in range(len(SHARES))]
        assert counts[0] == n
        assert all(math.ceil(a / 2) == b for a, b in pairwise(counts))
        costs = [m * share for m, share in zip(counts, SHARES, strict=True)]
        assert max(costs) - min(costs) < 1  # at most one full training apart
    assert survivors(0, 2) == 1


def test_ties_go_to_the_second_figure_and_then_to_the_first_listed():
    scores = {"c": (0.5, 0.7), "a": (0.5, 0.7), "b": (math.nan, 1.0), "d": (0.6, math.nan), "e": (0.5, 0.9)}
    assert ranked(scores, ["a", "b", "c", "d", "e"]) == ["d", "e", "a", "c", "b"]


def test_the_time_of_jobs_side_by_side_is_that_of_a_simulation():
    for seconds, workers in product(([4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 5.0], [2.0]), (1, 2, 3)):
        running, waiting, now = [], list(seconds), 0
        while waiting or running:  # one second at a time
            while waiting and len(running) < workers:
                running.append(waiting.pop(0))
            running = [left - 1 for left in running if left > 1]
            now += 1
        assert makespan(seconds, workers) == now
    assert makespan([], 2) == 0


@pytest.mark.parametrize(("left", "fit"), [(100.0, 3), (59.0, 2), (39.0, 1), (29.0, 0), (-5.0, 0)])
def test_what_fits_leaves_the_reserve(left, fit):
    assert that_fit([10.0, 20.0, 20.0], reserve=25.0, left=left, workers=1) == fit
