"""Rows for attackers: which sets count as balanced by hand, and that every part of one is balanced."""

import pytest
import torch
from scipy.stats import chi2, chi2_contingency

from unskew.core.errors import UserError
from unskew.stats.splits import draw_rounds, halves, is_balanced_by_design, matched_blocks, values_of


def one_hot(y):
    return torch.nn.functional.one_hot(y).float()


def copies(n=400, labels=12, seed=0):
    """The same label sets for both values."""
    x = (torch.rand(n, labels, generator=torch.Generator().manual_seed(seed)) < 0.3).float()
    return torch.cat([x, x]), torch.arange(2 * n) // n


def test_a_table_is_balanced_by_hand_if_chi_squared_is_under_its_quantile():
    found = 0
    for seed in range(300):
        g = torch.Generator().manual_seed(seed)
        y, a = torch.randint(0, 3, (300,), generator=g), torch.randint(0, 2, (300,), generator=g)
        counts = torch.zeros(3, 2).index_put((y, a), torch.ones(300), accumulate=True)
        expected = chi2_contingency(counts.numpy(), correction=False).statistic < chi2.ppf(0.01, 2)
        assert is_balanced_by_design(one_hot(y), a) == expected
        found += expected
    assert 0 < found < 15


def test_independent_sets_of_labels_rarely_count_as_balanced_and_copies_do():
    assert is_balanced_by_design(*copies())
    g = torch.Generator().manual_seed(0)
    found = [
        is_balanced_by_design((torch.rand(600, 20, generator=g) < 0.3).float(), torch.randint(0, 2, (600,), generator=g))
        for _ in range(200)
    ]
    assert sum(found) < 10


def test_every_part_of_a_balanced_set_is_balanced():
    y, a = torch.arange(1200) // 2 % 30, torch.arange(1200) % 2  # 20 rows of each (class, value)
    rounds = draw_rounds(a, 2, seed=0, labels=one_hot(y))
    assert rounds.by_design
    assert rounds.unmatched == 0
    for split in rounds.rows:
        assert [len(split[name]) for name in ("train", "val", "test")] == [600, 300, 300]
        assert not set(split["train"].tolist()) & set(split["val"].tolist())
        assert not set(split["test"].tolist()) & {*split["train"].tolist(), *split["val"].tolist()}
        for name in ("train", "val"):
            rows = split[name]
            assert torch.equal(y[rows[a[rows] == 0]].bincount(minlength=30), y[rows[a[rows] == 1]].bincount(minlength=30))


def test_labels_balanced_one_by_one_stay_so_in_every_part():
    x, a = copies()
    g = torch.Generator().manual_seed(1)
    x[400:] = torch.stack([column[torch.randperm(400, generator=g)] for column in x[400:].T], 1)  # same counts, other sets
    rounds = draw_rounds(a, 1, seed=0, labels=x)
    assert rounds.by_design
    assert 0.2 < rounds.unmatched <= 1
    rows = rounds.rows[0]["train"]
    left = (x[rows[a[rows] == 0]].sum(0) - x[rows[a[rows] == 1]].sum(0)).abs()
    # At random, the difference of a label with share 0.3 in 200 + 200 rows has a deviation of sqrt(400 * 0.3 * 0.7 / 2) = 6.5.
    assert left.mean() < 3


def test_rows_of_the_commoner_value_are_matched_too():
    y, a = torch.arange(900) // 3 % 10, (torch.arange(900) % 3 == 0).long()  # two of value 0 for every one of value 1
    blocks = matched_blocks(a, 2, one_hot(y), torch.Generator().manual_seed(0))
    assert len(blocks) == 300
    assert torch.equal(y[blocks[:, 0]], y[blocks[:, 1]])
    assert a[blocks].tolist() == [[0, 1]] * 300
    assert len(set(blocks.flatten().tolist())) == 600


def test_halves_are_disjoint_and_nearly_equal_in_sum():
    excess = torch.randn(401, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = halves(excess, torch.Generator().manual_seed(0))
    assert (len(first), len(second)) == (200, 201)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(401))
    assert (excess[first].sum(0) - excess[second].sum(0)).norm() < 12  # at random: sqrt(401 * 5) = 45


def test_other_sets_are_dealt_at_random_and_parts_are_obeyed():
    g = torch.Generator().manual_seed(0)
    a = (torch.rand(500, generator=g) < 0.3).long()
    rounds = draw_rounds(a, 3, seed=0, labels=one_hot(a))
    assert not rounds.by_design
    assert rounds.n == rounds.judges == 2 * int(a.sum())
    parts = torch.arange(500) % 3
    rounds = draw_rounds(a, 2, seed=0, parts=parts)
    for split in rounds.rows:
        for k, name in enumerate(("train", "val", "test")):
            rows = split[name]
            assert (parts[rows] == k).all()
            assert 2 * int(a[rows].sum()) == len(rows) == len(set(rows.tolist()))
    assert rounds.judges == len(rounds.rows[0]["test"])


def test_a_part_with_too_few_rows_is_named():
    with pytest.raises(UserError, match="bias value 0 has 10 rows of the test split"):
        values_of(torch.arange(200) % 2, 200, torch.tensor([0] * 100 + [1] * 80 + [2] * 20))
