"""True- and false-positive rates by bias value, from confusion tables written by hand and from scikit-learn."""

import math

import pytest
import torch
from sklearn.metrics import confusion_matrix

from unskew.core.errors import UserError
from unskew.measure import error_rates


def rows(*cells):
    """(guess, y, bias) from (y, guess, bias, n)."""
    columns = [torch.tensor([cell[k] for cell in cells for _ in range(cell[3])]) for k in (1, 0, 2)]
    return tuple(columns)


def test_two_classes_by_hand():
    # place in:  of 50 dogs 45 found, of 40 cats 4 called dog.  place out:  of 60 dogs 30 found, of 80 cats 24 called dog.
    given = rows(
        (1, 1, 0, 45), (1, 0, 0, 5), (0, 1, 0, 4), (0, 0, 0, 36), (1, 1, 1, 30), (1, 0, 1, 30), (0, 1, 1, 24), (0, 0, 1, 56)
    )  # fmt: skip
    rates = error_rates(*given, classes=["cat", "dog"], values=["in", "out"], name="place")
    dog, cat = rates["dog"], rates["cat"]
    assert {v: e.value for v, e in dog.true_positive_rate.items()} == {"in": 0.9, "out": 0.5}
    assert {v: e.value for v, e in dog.false_positive_rate.items()} == {"in": 0.1, "out": 0.3}
    assert dog.true_positive_gap.between == ("in", "out")
    assert dog.false_positive_gap.between == ("out", "in")
    assert dog.true_positive_gap.estimate.value == pytest.approx(0.4)
    assert dog.true_positive_gap.estimate.n == 110
    for v in ("in", "out"):  # with two classes, the rates of one are one minus the others' of the other
        assert cat.true_positive_rate[v].value == pytest.approx(1 - dog.false_positive_rate[v].value)
    # Newcombe's interval, method 10, from the Wilson intervals of 45 of 50 (.7864, .9565) and 30 of 60 (.3774, .6226).
    low, high = 0.4 - math.hypot(0.9 - 0.7864, 0.6226 - 0.5), 0.4 + math.hypot(0.9565 - 0.9, 0.5 - 0.3774)
    assert (dog.true_positive_gap.estimate.low, dog.true_positive_gap.estimate.high) == pytest.approx((low, high), abs=2e-4)


def test_several_classes_against_scikit_learn():
    torch.manual_seed(0)
    y, bias, logits = torch.randint(0, 3, (600,)), torch.randint(0, 2, (600,)), torch.randn(600, 3)
    rates = error_rates(logits, y, bias)
    for v in (0, 1):
        here = bias == v
        m = confusion_matrix(y[here], logits.argmax(1)[here], labels=[0, 1, 2])
        for c in range(3):
            assert rates[str(c)].true_positive_rate[str(v)].value == pytest.approx(m[c, c] / m[c].sum())
            others = m[[k for k in range(3) if k != c]]
            assert rates[str(c)].false_positive_rate[str(v)].value == pytest.approx(others[:, c].sum() / others.sum())


def test_labels_are_judged_each_on_its_own():
    y = torch.tensor([[1, 0], [1, 1], [0, 1], [0, 0]])
    logits = torch.tensor([[2.0, -1], [-1, 1], [1, 1], [-1, -1]])
    rates = error_rates(logits, y, torch.tensor([0, 0, 1, 1]), classes=["hat", "cup"], values=["m", "f"])
    assert rates["hat"].true_positive_rate["m"].value == 0.5
    assert rates["hat"].true_positive_rate["f"].reason == "no row of hat with bias f"
    assert rates["hat"].false_positive_rate["f"].value == 0.5
    assert rates["cup"].true_positive_rate["f"].value == 1
    assert rates["cup"].false_positive_rate["m"].value == 0


def test_small_and_missing_values_make_no_gap():
    given = rows((1, 1, 0, 40), (1, 0, 1, 29), (0, 0, 0, 40), (0, 0, 1, 40), (1, 0, -1, 500))
    rates = error_rates(*given, classes=["cat", "dog"], values=["in", "out"], name="place")["dog"]
    gap = rates.true_positive_gap
    assert math.isnan(gap.estimate.value)
    assert gap.estimate.reason == "fewer than two values of place have 30 rows of dog"
    assert rates.true_positive_rate["out"].n == 29  # rows without a value are in none
    assert rates.json()["true_positive_rate"]["out"]["small"]
    assert not rates.json()["true_positive_rate"]["in"]["small"]
    assert rates.false_positive_gap.estimate.value == 0
    assert rates.false_positive_gap.between == ("in", "out")


def test_lengths_that_differ_are_refused():
    with pytest.raises(UserError, match="a bias value per row"):
        error_rates(torch.zeros(3), torch.zeros(3), torch.zeros(2))
