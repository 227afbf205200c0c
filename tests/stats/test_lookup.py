"""The look-up attacker: its closed form against every split written out, and against draws."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import hypergeom

from unskew.stats.lookup import held_out_recalls, hypergeometric, patterns, recalls, table


def by_enumeration(counts):
    """Mean accuracy by value over all halves: rows are listed, every choice of h rows of each value is fitted, the rest judge."""
    values = range(len(counts[0]))
    rows = [[k for k, row in enumerate(counts) for _ in range(row[v])] for v in values]
    h = min(map(len, rows)) // 2
    total, splits = [Fraction(0)] * len(rows), 0
    for chosen in itertools.product(*(itertools.combinations(range(len(r)), h) for r in rows)):
        fitted = [[sum(rows[v][i] == k for i in chosen[v]) for v in values] for k in range(len(counts))]
        splits += 1
        for v in values:
            held = [rows[v][i] for i in range(len(rows[v])) if i not in chosen[v]]
            for k in held:
                best = [u for u in values if fitted[k][u] == max(fitted[k])]
                total[v] += Fraction(int(v in best), len(best) * len(held))
    return [float(t / splits) for t in total]


@pytest.mark.parametrize(
    "counts", [[[3, 1], [1, 3]], [[2, 2], [2, 2]], [[4, 1], [0, 3], [1, 0]], [[2, 1, 0], [1, 1, 2], [0, 1, 1]]]
)
def test_closed_form_is_the_mean_over_all_splits(counts):
    assert held_out_recalls(torch.tensor(counts)).tolist() == pytest.approx(by_enumeration(counts), abs=1e-12)


def test_two_rows_of_each_value_by_hand():
    # Rows of value 0: patterns 0 and 1; of value 1 the same; one of each is fitted. In half of the splits the fitted patterns agree
    # (a tie there, and the other pattern was never seen: a guess); in the other half they differ, and both held-out rows are
    # guessed wrong. So 1/2 * 1/2 + 1/2 * 0.
    assert held_out_recalls(torch.tensor([[1, 1], [1, 1]])).tolist() == [0.25, 0.25]


def test_large_counts_approach_the_ratio_of_counts():
    # 60 % and 30 % of the values have pattern 0: the guess is fixed, 0 for pattern 0, and right in 60 % and 70 %.
    assert held_out_recalls(torch.tensor([[60_000, 30_000], [40_000, 70_000]])).tolist() == pytest.approx([0.6, 0.7], abs=1e-9)


def test_chances_of_a_draw_agree_with_scipy():
    t = np.arange(0, 121)
    for total, marked, drawn in ((1000, 120, 300), (150, 120, 100), (120, 120, 60), (400, 0, 200)):
        assert hypergeometric(t, total, marked, drawn) == pytest.approx(hypergeom.pmf(t, total, marked, drawn), abs=1e-12)


def test_patterns_and_table():
    x = torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 1]])
    pattern = patterns(x)
    assert pattern[0] == pattern[2]
    assert len(set(pattern.tolist())) == 3
    counts = table(pattern, torch.tensor([0, 1, 0, -1]), 3, 2)
    assert counts[pattern[0]].tolist() == [2, 0]
    assert counts.sum() == 3


@pytest.mark.parametrize("labels", [3, 8, 70, 200])
def test_patterns_are_the_distinct_rows(labels):
    x = (torch.rand(60, labels, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    x = x[torch.randint(0, 60, (300,), generator=torch.Generator().manual_seed(1))]
    same = patterns(x)[:, None] == patterns(x)[None]
    assert torch.equal(same, (x[:, None] == x[None]).all(2))
    assert sorted(set(patterns(x).tolist())) == list(range(len({tuple(row) for row in x.tolist()})))


def test_fitted_shares_decide_not_counts():
    # Value 1 has ten times the rows: 20 of 100 against 3 of 10 with pattern 0, so the guess there is value 0.
    fitted = torch.tensor([[3, 20], [7, 80]])
    assert recalls(fitted, torch.tensor([[1, 1], [1, 3]])).tolist() == [0.5, 0.75]
