"""RBA: the margin is met on random tables, by the smallest shift, and nothing moves where nothing is wrong."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.core.errors import UserError
from unskew.stats.rba import LEAST, rba, training_ratios


def table(seed, n=400, labels=4, values=2):
    g = torch.Generator().manual_seed(seed)
    attribute = torch.randint(0, values, (n,), generator=g)
    lean = torch.randn(labels, values, generator=g)
    return torch.randn(n, labels, generator=g) + lean[:, attribute].T, attribute


def said_by(scores, single):
    return torch.nn.functional.one_hot(scores.argmax(1), scores.shape[1]).bool() if single else scores > 0


def shares(scores, attribute, values, single):
    return [[float((attribute[s] == v).double().mean()) for v in range(values)] for s in said_by(scores, single).T]


@given(
    seed=st.integers(0, 10_000), single=st.booleans(), scale=st.sampled_from([0.1, 1.0, 30.0, 300.0]), wanted=st.floats(0.2, 0.8)
)
@settings(max_examples=25, deadline=None)
def test_the_margin_is_met_on_random_tables_of_any_scale(seed, single, scale, wanted):
    scores, attribute = table(seed)
    scores = scale * scores
    ratios = torch.tensor([wanted, 1 - wanted]).expand(4, 2)
    if single:  # every row has a class, so not all classes can have a share that the rows themselves do not have
        ratios = (torch.bincount(attribute) / len(attribute)).expand(4, 2)
    watched = said_by(scores, single).sum(0) >= LEAST
    found = rba(scores, attribute, ratios, single=single)
    assert found.violations[1] == 0
    for row, r, w in zip(shares(found.scores, attribute, 2, single), ratios.tolist(), watched.tolist(), strict=True):
        assert not w or all(abs(s - wanted) <= 0.05 + 1e-6 for s, wanted in zip(row, r, strict=True))


@pytest.mark.parametrize("single", [False, True])
def test_what_is_counted_as_outside_is_outside(single):
    for seed in range(20):  # small tables of three values: often impossible
        scores, attribute = table(seed, n=80, values=3)
        ratios = torch.tensor([0.6, 0.3, 0.1]).expand(4, 3)
        watched = said_by(scores, single).sum(0) >= LEAST
        found = rba(scores, attribute, ratios, single=single)
        after = shares(found.scores, attribute, 3, single)
        inside = [all(abs(s - r) <= 0.05 + 1e-6 for s, r in zip(row, (0.6, 0.3, 0.1), strict=True)) for row in after]
        assert found.violations[1] == sum(bool(w) and not i for w, i in zip(watched, inside, strict=True))
        assert found.violations[1] <= found.violations[0]


def test_one_class_per_row_reaches_the_shares_of_the_rows():
    scores, attribute = table(3)
    overall = torch.bincount(attribute).double() / len(attribute)  # possible for all classes at once
    found = rba(scores, attribute, overall.expand(4, 2), single=True)
    assert found.violations[0] > 0
    assert found.violations[1] == 0


def test_it_moves_as_little_as_it_must():
    scores, attribute = table(1)
    ratios = torch.full((4, 2), 0.5)
    found = rba(scores, attribute, ratios)
    for k, (before, after) in enumerate(
        zip(shares(scores, attribute, 2, False), shares(found.scores, attribute, 2, False), strict=True)
    ):
        if abs(before[0] - 0.5) <= 0.05:
            torch.testing.assert_close(found.scores[:, k], scores[:, k])
        else:  # at the bound, not beyond it: within one row of 400
            assert abs(after[0] - 0.5) == pytest.approx(0.05, abs=0.01)
    again = rba(found.scores, attribute, ratios)
    torch.testing.assert_close(again.scores, found.scores)


def test_rows_without_an_attribute_stay_and_impossible_shares_are_counted():
    scores, attribute = table(2)
    attribute[:50] = -1
    found = rba(scores, attribute, torch.full((4, 2), 0.5))
    torch.testing.assert_close(found.scores[:50], scores[:50])
    alone = rba(scores, torch.zeros(len(scores), dtype=torch.long), torch.full((4, 2), 0.5))  # one value only: nothing to give to
    assert alone.violations == (4, 4)
    torch.testing.assert_close(alone.scores, scores)


def test_ratios_are_those_of_the_rows_with_the_label():
    y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert training_ratios(y, torch.tensor([0, 1, 1, -1]), 2, 2).tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(("margin", "values", "said"), [(0.0, 2, "margin"), (0.05, 1, "has no ratio")])
def test_bad_input(margin, values, said):
    scores, attribute = table(0)
    with pytest.raises(UserError, match=said):
        rba(scores, attribute, torch.full((4, values), 0.5), margin=margin)
