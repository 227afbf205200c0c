"""The trial before advice: a gain that chance may have made, or that costs more than it brings, is not advised."""

import dataclasses
import math

import pytest
import torch

from unskew.parts.trial import Trial, decision, loss_fall

SHORTCUT = Trial(
    supports=False, reason="", rows=3000, conflicting_rows=170, nuisances=(("color:kind=mean", "the mean colour", 0.83),),
    named=("color:kind=mean",), independent=(0.72, 0.85), conflicting=(0.47, 0.78), class_balanced=(0.94, 0.90), effective=650.0,
    gain=0.30, error=0.04, cost=0.13, loss=0.69,
)  # fmt: skip
# Photographs whose dark area is the class itself: balancing gains a little and costs more.
SIGNAL = dataclasses.replace(
    SHORTCUT,
    independent=(0.74, 0.79),
    conflicting=(0.57, 0.71),
    class_balanced=(0.82, 0.75),
    gain=0.045,
    error=0.022,
    cost=0.088,
    loss=0.54,
)


def logits(*of_right):
    """Logits of two classes whose probability of class 0, the right one, is given."""
    return torch.tensor([[math.log(p), math.log(1 - p)] for p in of_right], dtype=torch.float64)


def test_equal_weights_give_the_textbook_mean_and_standard_error():
    before, after = (0.5, 0.2, 0.9, 0.4), (0.6, 0.5, 0.8, 0.4)
    fall = [math.log(b) - math.log(a) for a, b in zip(before, after, strict=True)]
    mean = sum(fall) / 4
    error = math.sqrt(sum((f - mean) ** 2 for f in fall) / 4) / math.sqrt(4)
    y, w = torch.zeros(4, dtype=torch.long), torch.ones(4, dtype=torch.float64)
    assert loss_fall(logits(*before), logits(*after), y, w) == pytest.approx((mean, error), rel=1e-12)
    assert loss_fall(logits(*before), logits(*after), y, 7 * w) == pytest.approx((mean, error), rel=1e-12)


def test_a_heavy_row_is_one_row_of_greater_influence():
    w = torch.tensor([1.0, 1, 2], dtype=torch.float64)
    mean, error = loss_fall(logits(0.2, 0.5, 0.4), logits(0.4, 0.5, 0.8), torch.zeros(3, dtype=torch.long), w)
    fall, middle = (math.log(2), 0.0, math.log(2)), 0.75 * math.log(2)
    assert mean == pytest.approx(middle)
    assert error == pytest.approx(math.sqrt(sum((k * (f - middle)) ** 2 for k, f in zip((1, 1, 2), fall, strict=True))) / 4)


def test_a_certain_gain_that_pays_is_advised():
    assert decision(SHORTCUT, 0.83) == (True, "accuracy where the mean colour tells nothing: 72 % plain, 85 % balanced")


def test_the_reason_says_what_was_taken_out():
    without = dataclasses.replace(SHORTCUT, removed="color")
    assert decision(without, 0.83) == (True, "accuracy where the mean colour tells nothing: 72 % plain, 85 % without colours")


def test_what_costs_more_than_it_gains_is_not_advised():
    supports, reason = decision(SIGNAL, 0.82)
    assert not supports
    assert "costs more on the rows as they are (7 points of class-balanced accuracy) than it gains" in reason
    assert "so this may be part of what defines the class" in reason
    # Gentler weights cost fewer right answers, but the loss still falls by less than an eighth, and rises more elsewhere.
    gentle = dataclasses.replace(SIGNAL, class_balanced=(0.82, 0.79), gain=0.046, error=0.015, cost=0.063)
    supports, reason = decision(gentle, 0.82)
    assert not supports
    assert "raises the loss on the rows as they are by more than it lowers it there, so this may be part" in reason
    assert decision(dataclasses.replace(gentle, loss=0.36), 0.82)[0]
    assert decision(dataclasses.replace(gentle, cost=0.045), 0.82)[0]


def test_a_gain_pays_in_loss_or_in_accuracy():
    by_loss = dataclasses.replace(SHORTCUT, independent=(0.75, 0.77), class_balanced=(0.97, 0.94))
    by_accuracy = dataclasses.replace(SHORTCUT, gain=0.11, cost=0.12)
    assert by_loss.pays
    assert by_accuracy.pays
    assert not dataclasses.replace(by_loss, cost=0.31).pays
    assert SIGNAL.helps(1.645) is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"error": 0.2}, "may be chance"),
        ({"gain": -0.01}, "gains too little"),
        ({"independent": (0.8, 0.79)}, "gains too little"),  # surer, but not more often right
        ({"conflicting": (0.5, 0.5)}, "may be chance"),
        ({"conflicting_rows": 9}, "only 9 rows contradict that"),
        ({"named": ()}, "none of the 1 simple representations tried explains for certain"),
        ({"nuisances": ()}, "no simple representation"),
    ],
)
def test_what_is_not_advised(change, words):
    supports, reason = decision(dataclasses.replace(SHORTCUT, **change), 0.5)
    assert not supports
    assert words in reason
