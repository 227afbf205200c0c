"""Verdicts from group tables made by hand: each threshold from both sides, and the order of seriousness."""

import pytest
import torch

from unskew.measure import groups
from unskew.pages.verdict import collapsed, difference, inverted, judge_groups, memorised, under_trained, worst_class
from unskew.records import Estimate

EYE = [torch.eye(2).bool()]


def table(*cells, bias=True, classes=("cat", "dog")):
    """Groups from (y, b, n, right)."""
    y = torch.tensor([a for a, _, n, _ in cells for _ in range(n)])
    b = torch.tensor([c for _, c, n, _ in cells for _ in range(n)])
    guess = torch.tensor([a if k < r else (a + 1) % len(classes) for a, _, n, r in cells for k in range(n)])
    if not bias:
        return groups(guess, y, classes=classes)
    return groups(guess, y, b, aligned=EYE, classes=classes, bias_names=["place"], bias_values=[["in", "out"]])


def symmetric(n, aligned, m, conflicting):
    """Both classes alike: `n` rows and `aligned` right in each aligned group, `m` and `conflicting` in each of the others."""
    return table((0, 0, n, aligned), (1, 1, n, aligned), (0, 1, m, conflicting), (1, 0, m, conflicting))


def test_few_rows_claim_nothing():
    _, low, high = difference(Estimate(1.0, 0.34, 1.0, 2), Estimate(1.0, 0.34, 1.0, 2))
    assert low < -0.5
    assert high > 0.5
    found = judge_groups(symmetric(1, 1, 1, 1))
    assert found.kind == "unclear"
    assert found.sentence.startswith("Too few rows to tell")


@pytest.mark.parametrize(
    ("right", "kind"),
    [(20, "takes-shortcut"), (180, "takes-shortcut"), (186, "leans"), (197, "no-shortcut"), (198, "no-shortcut")],
)
def test_the_shortcut_by_the_interval_of_the_difference(right, kind):
    # Aligned 396 of 400. Conflicting 186 of 200 each: 6 points, Newcombe about 3.5 to 9; 180: 9 points, 6 to 12.4.
    assert judge_groups(symmetric(200, 198, 200, right)).kind == kind


def test_inverted_needs_aligned_below_chance_and_below_conflicting():
    found = judge_groups(symmetric(100, 1, 100, 100))
    assert found.kinds == ("inverted",)
    assert "1.0 % right where place agrees with the class, below chance (50.0 %), and 100.0 % where it does not" in found.sentence
    assert inverted(symmetric(100, 1, 100, 1)) is None  # wrong everywhere alike
    assert inverted(symmetric(100, 48, 100, 100)) is None  # the interval of the aligned ones contains chance
    assert inverted(symmetric(100, 35, 100, 100)) is not None
    assert judge_groups(symmetric(100, 70, 100, 100)).kind == "worse-aligned"


def test_memorised_conflicting_rows():
    train, test = symmetric(900, 890, 50, 45), symmetric(200, 199, 200, 20)  # conflicting 90 % and 10 %
    found = judge_groups(test, train=train)
    assert found.kinds == ("memorised", "takes-shortcut")
    assert (
        "of the conflicting rows, 90.0 % are right in training (n 100) and 10.0 % of those it has not seen (n 400)"
        in found.sentence
    )
    assert judge_groups(test, train=train, own_rows=False).kinds == ("takes-shortcut",)  # the other source may be harder
    assert memorised(test, symmetric(900, 890, 50, 19)) is None  # 38 %: less than 30 points above
    assert memorised(test, symmetric(900, 890, 50, 21)) is not None  # 42 %
    assert memorised(test, symmetric(900, 890, 4, 4)) is None  # all of 8 rows: too few to say so
    assert memorised(test, symmetric(900, 890, 5, 5)) is not None
    assert memorised(test, None) is None


def test_a_mix_of_groups_that_differs_is_not_memorised():
    """In every group the same accuracy; training has few conflicting rows, so its plain accuracy is 60 points higher."""
    train, test = symmetric(950, 940, 50, 5), symmetric(100, 99, 900, 90)
    assert train.plain.value - test.plain.value > 0.6
    assert judge_groups(test, train=train).kinds == ("takes-shortcut",)


def test_memorised_in_one_group_or_class():
    train = table((0, 0, 100, 100), (1, 1, 100, 100), (0, 1, 100, 50), (1, 0, 100, 50))
    test = table((0, 0, 100, 100), (1, 1, 100, 60), (0, 1, 100, 50), (1, 0, 100, 50))
    assert "rows of dog × out, 100.0 % are right in training (n 100) and 60.0 %" in memorised(test, train)[1]
    before, now = table((0, 0, 100, 100), (1, 0, 100, 95), bias=False), table((0, 0, 100, 90), (1, 0, 100, 30), bias=False)
    kind, sentence = memorised(now, before)
    assert kind == "memorised"
    assert sentence.startswith("Memorised, or relying on something that the new rows lack: of the rows of dog, 95.0 %")


def test_collapsed():
    classes = ("cat", "dog")
    assert collapsed(classes, [95, 5], [50, 50])[1] == (
        "Collapsed to one class: 95.0 % of 100 predictions are cat, the class of 50.0 % of the rows."
    )
    assert collapsed(classes, [94, 6], [50, 50]) is None
    assert collapsed(classes, [100, 0], [96, 4]) is None  # the rows are of one class too
    assert collapsed(classes, [100, 0], [93, 7]) is not None
    assert collapsed(classes, [95, 5], [93, 7]) is None  # five of seven are found
    # Half right everywhere is not "no sign of the shortcut" but a model that has learnt nothing.
    all_cats = table((0, 0, 400, 400), (0, 1, 400, 400), (1, 0, 400, 0), (1, 1, 400, 0))
    found = judge_groups(all_cats, predicted=[1600, 0], rows=[800, 800], train=all_cats)
    assert found.kinds == ("collapsed", "under-trained")
    assert found.sentence.endswith("50.0 % of the rows are right.")
    assert "shortcut" not in found.sentence


def test_under_trained_is_by_class_so_that_a_large_class_does_not_count():
    # Two classes: chance is 50 %, a fifth of the way to 100 % is 60 %.
    assert under_trained(table((0, 0, 900, 900), (1, 0, 100, 10), bias=False))[0] == "under-trained"  # plain 91 %, by class 55 %
    assert under_trained(table((0, 0, 100, 60), (1, 0, 100, 59), bias=False)) is not None
    assert under_trained(table((0, 0, 100, 61), (1, 0, 100, 60), bias=False)) is None
    assert under_trained(None) is None


def test_without_a_bias_column_the_worst_class_is_named():
    found = judge_groups(table((0, 0, 120, 73), (1, 0, 100, 90), (2, 0, 5, 0), bias=False, classes=("coat", "shirt", "bag")))
    assert found.kind == "no-bias-column"
    assert found.sentence.endswith("worst class: coat, 60.8 % of 120 rows (perhaps bag, 0.0 % of 5 rows: too few to be sure).")
    assert worst_class(table((0, 0, 9, 1), (1, 0, 8, 4), bias=False)) == "worst class: cat, 11.1 % of 9 rows, under 30"


def test_several_labels_keep_their_sentence():
    y = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0]])
    found = judge_groups(groups(y * 2.0 - 1, y, torch.tensor([0, 1, 0, 1])), multi_label=True)
    assert found.kind == "multi-label"
    assert found.sentence == "Rows have several labels: 100.0 % of the labels are right: 100.0 % for 0, 100.0 % for 1."
