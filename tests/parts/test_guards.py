"""Guards: each kind of harm alone, on weights made to do it."""

import torch

from unskew.data.dataset import DataSet, Memory
from unskew.parts.guards import change, harms
from unskew.records import Measured, Reading


def data(n=400):
    y = torch.arange(n) % 2
    split = torch.zeros(n, dtype=torch.long)
    return DataSet(name="d", inputs=Memory(torch.zeros(n, 1)), y=y, classes=("cat", "dog"), split=split)


def reading(bias, low=None, high=None):
    return Reading(bias=bias, low=bias - 0.05 if low is None else low, high=bias + 0.05 if high is None else high, n=400)


def kinds(weight, opinion=None, measured=()):
    d = data(len(weight))
    return [h.kind for h in harms(d, torch.arange(len(weight)), weight, opinion, list(measured))]


def test_even_weights_do_no_harm():
    assert kinds(torch.ones(400)) == []
    assert kinds(torch.ones(20)) == []  # a small set that keeps all of its rows


def test_too_few_effective_rows():
    weight = torch.full((400,), 1e-6)
    weight[:20] = 1
    assert kinds(weight) == ["rows"]


def test_a_class_that_loses_more_than_half_of_its_part():
    y = data().y
    # Class 1 has half of the rows; with weight 0.3 it has 0.3 / 1.3 = 23 % of the weight, 46 % of what it had.
    assert kinds(torch.where(y == 1, 0.3, 1.0)) == ["class"]
    assert kinds(torch.where(y == 1, 0.4, 1.0)) == []


def test_a_reversed_shortcut():
    y = data().y
    opinion = torch.where(torch.arange(400) < 360, y, 1 - y)
    assert kinds(torch.where(opinion == y, 0.01, 1.0), opinion) == ["reversed"]
    assert kinds(torch.where(opinion == y, 1 / 9, 1.0), opinion) == []  # independent
    assert kinds(torch.ones(400), opinion) == []


def test_a_shortcut_that_becomes_easier_to_read():
    assert kinds(torch.ones(400), None, [Measured("color", reading(0.3), reading(0.6))]) == ["raised"]
    assert kinds(torch.ones(400), None, [Measured("color", reading(0.3), reading(0.34))]) == []  # within the intervals
    assert (
        kinds(torch.ones(400), None, [Measured("color", Reading(bias=None, low=None, high=None, n=0, reason="x"), reading(0.3))])
        == []
    )


def test_noise_that_is_nothing_but_rows_without_the_shortcut():
    d = data()
    opinion = torch.where(torch.arange(400) < 360, d.y, 1 - d.y)
    lacking = opinion != d.y  # 40 rows
    for noisy, expected in ((lacking, ["noise"]), (torch.arange(400) % 10 == 0, []), (torch.zeros(400, dtype=torch.bool), [])):
        found = harms(d, torch.arange(400), (~noisy).double(), opinion, [], noisy)
        assert [h.kind for h in found] == expected


def test_the_word_for_what_became_of_it():
    assert change(Measured("c", reading(0.8), reading(0.1)), []) == "removed"
    assert change(Measured("c", reading(0.8), reading(0.5)), []) == "less"
    assert change(Measured("c", reading(0.8), reading(0.75)), []) == "hardly less"
    assert change(Measured("c", reading(0.8), reading(0.95)), []) == "more"
