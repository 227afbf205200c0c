"""Group accuracy and its averages against numbers worked out by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure import groups


def test_averages_by_hand():
    # (y, b): n, right.  (0,0): 40, 36   (0,1): 30, 6   (1,0): 8, 0   (1,1): 32, 32
    cells = [(0, 0, 40, 36), (0, 1, 30, 6), (1, 0, 8, 0), (1, 1, 32, 32)]
    y = torch.tensor([a for a, _, n, _ in cells for _ in range(n)])
    b = torch.tensor([c for _, c, n, _ in cells for _ in range(n)])
    guess = torch.tensor([a if k < r else 1 - a for a, _, n, r in cells for k in range(n)])
    g = groups(guess, y, b, aligned=[torch.eye(2).bool()])
    assert g.plain.value == pytest.approx(74 / 110)
    assert g.class_balanced.value == pytest.approx(float((Fraction(42, 70) + Fraction(32, 40)) / 2))
    assert g.group_mean.value == pytest.approx(float((Fraction(36, 40) + Fraction(6, 30) + 0 + 1) / 4))
    assert g.worst_group.value == pytest.approx(6 / 30)  # the lowest group has fewer than 30 rows
    assert g.unbiased.value == pytest.approx((36 / 40 + 6 / 30 + 1) / 3)  # groups of more than 10 rows
    assert g.aligned.value == pytest.approx(68 / 72)
    assert g.conflicting.value == pytest.approx(6 / 38)
    assert g.matrix().tolist() == [[0.9, 0.2], [0.0, 1.0]]
    assert g.n.tolist() == [[40, 30], [8, 32]]
    assert g.biased == g.aligned.value


def test_logits_and_predictions_agree_and_order_does_not_matter():
    torch.manual_seed(0)
    y, b, logits = torch.randint(0, 3, (200,)), torch.randint(0, 2, (200,)), torch.randn(200, 3)
    order = torch.randperm(200)
    one, two = groups(logits, y, b).json(), groups(logits.argmax(1)[order], y[order], b[order]).json()
    assert repr(one) == repr(two)


def test_missing_bias_leaves_the_groups_but_not_the_plain_average():
    g = groups(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), torch.tensor([0, 1, -1]))
    assert g.without_bias == 1
    assert g.plain.n == 3
    assert sum(c.n for c in g.cells) == 2


def test_undefined_is_nan_with_a_reason():
    g = groups(torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert math.isnan(g.aligned.value)
    assert g.aligned.reason == "no bias column"
    assert math.isnan(g.worst_group.value)
    assert "30 rows" in g.worst_group.reason


def test_large_aligned_groups_alone_make_no_unbiased_accuracy():
    """Two aligned groups of 40, all right; two conflicting groups of 8, all wrong."""
    y = torch.tensor([0] * 48 + [1] * 48)
    bias = torch.tensor([0] * 40 + [1] * 8 + [1] * 40 + [0] * 8)
    eye = [torch.eye(2, dtype=torch.bool)]
    g = groups(bias, y, bias, aligned=eye)
    assert (g.aligned.value, g.conflicting.value) == (1, 0)
    assert math.isnan(g.worst_group.value)
    assert g.worst_group.reason == "no conflicting group has 30 rows"
    assert g.unbiased.reason == "no conflicting group has more than 10 rows"
    assert groups(bias[:40], y[:40], bias[:40], aligned=eye).worst_group.value == 1  # no conflicting rows: nothing is hidden
    twice = [t.repeat(2) for t in (bias, y, bias)]  # conflicting groups of 16
    assert groups(*twice, aligned=eye).unbiased.value == 0.5


def test_arrays_and_lists_will_do_and_words_are_refused():
    y, bias = [0, 1, 1], np.array([0, 1, 0])
    assert groups(np.array([0, 1, 0]), y, bias).plain.value == pytest.approx(2 / 3)
    with pytest.raises(UserError, match=r"bias values must be numbers \(codes from 0 on\)"):
        groups(y, y, np.array(["a", "b", "a"]))


def test_several_bias_columns_make_their_intersections():
    y = torch.tensor([0, 0, 1, 1])
    bias = torch.tensor([[0, 0], [0, 1], [1, 1], [1, 1]])
    g = groups(y, y, bias, aligned=[torch.eye(2).bool()] * 2)
    assert [(c.y, c.bias, c.n) for c in g.cells] == [(0, (0, 0), 1), (0, (0, 1), 1), (1, (1, 1), 2)]
    assert [c.aligned for c in g.cells] == [True, False, True]


def test_lengths_that_differ_are_refused():
    with pytest.raises(UserError, match="3 predictions, 2 labels"):
        groups(torch.tensor([0, 1, 1]), torch.tensor([0, 1]))


def test_no_rows_have_no_accuracy():
    assert math.isnan(groups([], [], []).plain.value)
