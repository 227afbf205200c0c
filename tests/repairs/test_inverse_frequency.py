"""Weights that give every group the same total."""

import pytest
import torch

from unskew.repairs import inverse_frequency


def test_inverse_frequency_gives_every_group_the_same_total():
    group = torch.tensor([0] * 50 + [1] * 5 + [3] * 20 + [-1] * 4)
    w = inverse_frequency(group)
    totals = [float(w[group == g].sum()) for g in (0, 1, 3)]
    assert totals == pytest.approx([25.0, 25.0, 25.0])
    assert float(w[group >= 0].mean()) == pytest.approx(1)
    assert w[-1] == 1
