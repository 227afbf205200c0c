"""Codes of groups are a bijection, and independent columns have a lift of one."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from unskew.stats.groups import group_id, lift


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_group_id_is_a_bijection(sizes):
    rows = torch.cartesian_prod(*(torch.arange(s) for s in sizes)).reshape(-1, len(sizes))
    assert sorted(group_id(list(rows.unbind(1)), sizes).tolist()) == list(range(math.prod(sizes)))


def test_group_id_refuses_a_code_out_of_range():
    with pytest.raises(ValueError, match=r"0\.\.1"):
        group_id([torch.tensor([0, 2])], [2])


def test_lift_is_one_for_independent_columns():
    y = torch.tensor([0, 0, 1, 1] * 5)
    b = torch.tensor([0, 1, 0, 1] * 5)
    torch.testing.assert_close(lift(y, b, 2, 2), torch.ones(2, 2, dtype=torch.float64))
