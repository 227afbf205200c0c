"""The page of a repair: shares of classes and bias values by hand, and a verdict that hides no loss."""

import dataclasses

import polars as pl
import torch

from unskew.data.dataset import DataSet, Memory
from unskew.pages.repair import gallery, histogram, plane, truth, verdict
from unskew.records import Composition, Measured, Reading
from unskew.repairs._contract import Outcome


def rows():
    """Six vectors of two classes, one without a bias value; the weights drop two of them and double one."""
    data = DataSet(
        name="six", inputs=Memory(torch.zeros(6, 2)), y=torch.tensor([0, 0, 0, 1, 1, 1]), classes=("a", "b"),
        split=torch.zeros(6, dtype=torch.long), bias=torch.tensor([[0], [0], [1], [1], [1], [-1]]), bias_names=("site",),
        bias_values=(("p", "q"),),
    )  # fmt: skip
    weight = torch.tensor([1.0, 0.0, 2.0, 1.0, 1.0, 0.0])
    return data, Outcome(torch.arange(6), weight, weight)


def measured(before, after):
    return Measured(
        "color", *(Reading(bias=bias, low=bias, high=bias, n=9, reason="" if bias else "too few") for bias in (before, after))
    )


def test_the_verdict_says_what_is_left_of_the_shortcut_and_of_the_classes():
    even = Composition(classes=["a", "b"], before=[0.5, 0.5], after=[0.4, 0.6], by_bias=[])
    assert verdict(5, 9, measured(0.5, 0.1), even) == (
        "5 of 9 rows kept; 50 % of the label could be read from color before, 10 % after."
    )
    assert "does not remove the shortcut" in verdict(5, 9, measured(0.5, 0.41), even)  # less than a fifth is gone
    assert "does not remove the shortcut" not in verdict(5, 9, measured(0.5, 0.39), even)
    lost = Composition(classes=["a", "b"], before=[0.5, 0.5], after=[0.09, 0.91], by_bias=[])
    assert verdict(5, 9, measured(0.5, 0.1), lost).endswith("Little is left of class a: under a fifth of the former share.")
    assert "could not be measured: too few" in verdict(5, 9, measured(0.5, None), even)


def test_there_are_no_pictures_of_vectors_and_no_chart_of_one_value():
    data, outcome = rows()
    assert gallery(data, outcome) == {"reason": "inputs are not images", "samples": []}
    assert "<svg" in histogram(outcome.score).svg
    assert not histogram(torch.ones(6))
    assert not plane(outcome)


def test_the_truth_of_rows_is_told_where_it_is_known():
    data, outcome = rows()
    # a-p and b-q are the pairs of the training rows; the third row of a is in q, and the last row has no value.
    assert truth(data, outcome) == ["aligned", "aligned", "conflicting", "aligned", "aligned", "neither"]
    noisy = dataclasses.replace(data, columns=pl.DataFrame({"clean_label": [0, 1, 0, 1, 1, 1]}))
    assert truth(noisy, outcome)[1] == "wrong label"
    assert truth(dataclasses.replace(data, bias=torch.zeros(6, 0).long(), bias_names=(), bias_values=()), outcome) is None
    assert "conflicting" in histogram(outcome.score, truth(data, outcome)).svg
