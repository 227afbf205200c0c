"""Balanced subsets keep the ratio that is asked for, or say the one that they reach."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unskew.core.errors import UserError
from unskew.repairs import balance


@given(
    st.integers(0, 2**31),
    st.integers(2, 3),
    st.integers(1, 6),
    st.sampled_from([1.0, 1.5, 2.0, 3.0]),
)
def test_balanced_subsets_keep_the_ratio(seed, values, labels, alpha):
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.random((150, labels)) < rng.uniform(0.1, 0.7, labels)).long()
    bias = torch.from_numpy(rng.integers(0, values, 150))
    bias[rng.random(150) < 0.1] = -1
    bias[torch.from_numpy(rng.random(150) < 0.4) & (y[:, 0] == 1) & (bias > 0)] = 0
    found = balance(y, bias, alpha=alpha, seed=seed % 100)
    before = np.array([[int(((y[:, k] == 1) & (bias == v)).sum()) for v in range(values)] for k in range(labels)])
    kept = found.index
    after = np.array([[int(((y[kept, k] == 1) & (bias[kept] == v)).sum()) for v in range(values)] for k in range(labels)])
    both = (before > 0).all(1)
    assert (after[both] > 0).all()  # no label loses a value
    assert set((bias == -1).nonzero().flatten().tolist()) <= set(kept.tolist())
    assert sorted(found.one_sided) == [k for k in range(labels) if before[k].sum() and not both[k]]
    reached = max([after[k].max() / after[k].min() for k in range(labels) if both[k]], default=1.0)
    assert found.reached == pytest.approx(reached)
    if alpha >= 2 and labels <= 3 and before[both].min(initial=99) >= 8:
        assert reached <= alpha  # enough rows to choose from: it must be met
    if found.reached <= alpha:
        for k in range(labels):
            if both[k]:
                for v in range(values):
                    for other in range(values):
                        assert after[k, v] <= alpha * after[k, other] + 1e-9


@given(st.integers(0, 2**31), st.sampled_from([1.0, 1.3, 2.0]))
def test_one_class_per_row_is_always_met_and_drops_no_more_than_needed(seed, alpha):
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.integers(0, 3, 200))
    bias = torch.from_numpy((rng.random((200, 2)) < 0.3).astype("int64"))  # two columns: four combinations
    code = bias[:, 0] * 2 + bias[:, 1]
    before = np.array([[int(((y == k) & (code == v)).sum()) for v in range(4)] for k in range(3)])
    found = balance(y, bias, alpha=alpha)
    for k in range(3):
        if (before[k] > 0).all():
            after = [int(((y[found.index] == k) & (code[found.index] == v)).sum()) for v in range(4)]
            assert after == [min(n, int(alpha * before[k].min() + 1e-9)) for n in before[k]]


def test_alpha_that_cannot_be_met_says_the_ratio_reached():
    # Label 0 has two rows with value 0 and one with value 1, and each of the two is the only one of another label.
    y = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
    found = balance(y, torch.tensor([0, 0, 1]), alpha=1.0)
    assert found.reached == 2
    assert found.ratios == (2, 1, 1)
    assert len(found.index) == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda: balance([], []),
        lambda: balance([-1, 0], [0, 1]),
        lambda: balance([0, 0], [0, 1], alpha=math.nan),
    ],
)
def test_no_rows_codes_out_of_range_and_no_number_are_told(ask):
    with pytest.raises(UserError):
        ask()


@given(st.integers(0, 2**31), st.sampled_from([1.0, 1.3, 2.0]))
def test_classes_are_label_sets_of_one(seed, alpha):
    rng = np.random.default_rng(seed)
    y, bias = torch.from_numpy(rng.integers(0, 4, 120)), torch.from_numpy(rng.integers(-1, 3, 120))
    bias[(y == 3) & (bias == 2)] = 1  # a class that lacks a value
    one, sets = (
        balance(y, bias, alpha=alpha, seed=seed % 50),
        balance(torch.nn.functional.one_hot(y, 4), bias, alpha=alpha, seed=seed % 50),
    )
    assert torch.equal(one.index, sets.index)
    assert (one.reached, one.ratios, one.one_sided) == (sets.reached, sets.ratios, sets.one_sided)
