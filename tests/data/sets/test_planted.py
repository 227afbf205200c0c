"""Planted information: against a channel computed by hand, and in the rows."""

import math

import pytest
import torch

from unskew.data import load
from unskew.data.sets.planted import copy_chance, information


def test_planted_information_against_a_hand_computed_channel():
    # Two equal classes, z copies y with q = 0.6, else guesses: z = y with 0.8. Capacity of that binary channel: 1 - h(0.2) bits.
    h = -(0.2 * math.log2(0.2) + 0.8 * math.log2(0.8))
    assert information(0.6, torch.tensor([0.5, 0.5], dtype=torch.float64)) == pytest.approx((1 - h) * math.log(2), rel=1e-12)
    assert copy_chance(1 - h, torch.tensor([0.5, 0.5], dtype=torch.float64)) == pytest.approx(0.6, abs=1e-9)


def test_planted_rows_show_the_planted_information():
    data = load("planted:bias=0.3,shares=0.7,0.2,0.1,rows=200000")
    joint = torch.zeros(3, 3, dtype=torch.float64)
    joint.view(-1).index_add_(0, data.y * 3 + data.bias[:, 0], torch.ones(len(data)).double())
    joint /= joint.sum()
    p, z = joint.sum(1, keepdim=True), joint.sum(0, keepdim=True)
    found = float((joint * (joint / (p * z)).log()).sum() / -(p * p.log()).sum())
    assert found == pytest.approx(0.3, abs=0.01)
