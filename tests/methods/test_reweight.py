"""Reweighting: the weights of the groups."""

import pytest
import torch

from tests.support.methods import make, toy


def test_reweight_gives_every_group_the_same_say():
    data = toy()
    method = make("reweight")
    counts = data.group.bincount(minlength=9)
    there = counts > 0
    totals = (method.group_weight.double() * counts)[there]
    torch.testing.assert_close(totals, totals[:1].expand_as(totals), rtol=1e-5, atol=1e-6)
    assert float(totals.sum()) == pytest.approx(64, rel=1e-5)
