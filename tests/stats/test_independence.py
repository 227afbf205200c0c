"""Weights that make class and opinion independent: by hand, by their defining equations, and at their limits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unskew.core.errors import UserError
from unskew.stats.independence import agreement, calibrate, effective_rows, independence_weights, raked_weights


def joint(weight, y, o, classes):
    table = torch.zeros(classes, classes, dtype=torch.float64)
    for w, a, b in zip(weight.tolist(), y.tolist(), o.tolist(), strict=True):
        table[a, b] += w / len(y)
    return table


def test_two_classes_by_hand():
    # 45 + 5 rows of class 0, 10 + 40 of class 1: P(y) = 1/2, P(o=0) = 55/100. Cell (0, 1) must hold 0.5 * 0.45 of the mass.
    y = torch.tensor([0] * 50 + [1] * 50)
    o = torch.tensor([0] * 45 + [1] * 5 + [0] * 10 + [1] * 40)
    w = independence_weights(y, o, 2)
    assert float(w[0]) == pytest.approx(0.5 * 0.55 * 100 / 45)
    assert float(w[45]) == pytest.approx(0.5 * 0.45 * 100 / 5)
    assert float(w[50]) == pytest.approx(0.5 * 0.55 * 100 / 10)
    assert effective_rows(w) == pytest.approx(100**2 / float(w.square().sum()))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=9, max_size=60))
def test_class_shares_stay_and_full_tables_are_independent(pairs):
    pairs += [(a, b) for a in range(3) for b in range(3)]  # no empty cell
    y, o = (torch.tensor(column) for column in zip(*pairs, strict=True))
    table = joint(independence_weights(y, o, 3), y, o, 3)
    torch.testing.assert_close(table.sum(1), y.bincount(minlength=3) / len(y) * torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(table, table.sum(1, keepdim=True) * table.sum(0))


def test_raking_of_one_label_is_the_two_class_case():
    y = torch.tensor([0] * 50 + [1] * 50)
    o = torch.tensor([0] * 45 + [1] * 5 + [0] * 10 + [1] * 40)
    torch.testing.assert_close(raked_weights(y[:, None], o[:, None]), independence_weights(y, o, 2))


def test_raking_makes_every_label_independent_of_its_own_opinion():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (400, 3), generator=g)
    o = torch.where(torch.rand(400, 3, generator=g) < 0.85, y, 1 - y)
    w = raked_weights(y, o)
    for label in range(3):
        table = joint(w, y[:, label], o[:, label], 2)
        torch.testing.assert_close(table, table.sum(1, keepdim=True) * table.sum(0), atol=1e-6, rtol=0)


def test_agreement_by_hand():
    # Weights 3, 1, 1, 3: they agree on the first and the last row, 6 of 8; both margins are one half, so chance is one half.
    got, free = agreement(torch.tensor([3.0, 1.0, 1.0, 3.0]), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]), 2)
    assert (got, free) == (0.75, 0.5)


def biased_set():
    """475 + 25 rows of each of two classes; the opinion is right on the 475."""
    y = torch.tensor([0] * 500 + [1] * 500)
    o = torch.where(torch.arange(1000) % 500 < 475, y, 1 - y)
    return y, o


def test_weights_that_would_invert_stop_at_independence():
    y, o = biased_set()
    raw = torch.where(o == y, 1e-3, 1.0)  # nearly all weight on the 50 conflicting rows, as PGD's probabilities with two classes
    assert agreement(raw, y, o, 2)[0] < 0.05
    found = calibrate(raw, y, o, 2)
    # Independence: 475 t = 25, where t = (1e-3)^power.
    assert found.power == pytest.approx(float(torch.tensor(25 / 475).log() / torch.tensor(1e-3).log()), rel=1e-6)
    assert found.agreement == pytest.approx(found.independent, abs=1e-6)
    assert found.stopped == "independence"
    assert "independent" in found.words()


def test_weights_that_stop_short_are_kept_as_they_are():
    y, o = biased_set()
    mild = torch.where(o == y, 0.5, 1.0)
    found = calibrate(mild, y, o, 2)
    assert (found.power, found.stopped) == (1.0, "the weights as given")
    torch.testing.assert_close(found.weight, mild.double() / mild.double().mean())
    assert "points above independence" in found.words()


def test_the_floor_of_effective_rows_holds():
    y, o = biased_set()
    raw = torch.full((1000,), 1e-6)
    raw[[499, 999]] = 1.0  # two rows have all the weight
    found = calibrate(raw, y, o, 2, least=40)
    assert found.effective >= 40 * 0.999
    assert found.stopped == "effective rows"


def test_a_dropped_class_is_kept_and_wrong_weights_are_refused():
    y, o = biased_set()
    gone = torch.where(y == 0, 0.0, 1.0)
    w = calibrate(gone, y, o, 2).weight
    assert float(w[y == 0].sum()) == pytest.approx(500)
    with pytest.raises(UserError, match="one weight per row"):
        calibrate(torch.zeros(1000), y, o, 2)


def test_the_class_is_independent_of_each_of_two_opinions():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (3000,), generator=generator)
    opinions = torch.stack([torch.where(torch.rand(3000, generator=generator) < 0.8, y, (y + 1 + k) % 3) for k in range(2)], 1)
    w = independence_weights(y, opinions, 3)
    assert float(w.mean()) == pytest.approx(1)
    for k in range(2):
        table = joint(w, y, opinions[:, k], 3)
        # Cells that no row is in stay empty, so the margins hold and agreement falls to what the other cells leave.
        torch.testing.assert_close(table.sum(1), y.bincount(minlength=3) / len(y) * torch.ones(3, dtype=torch.float64))
        alone = joint(independence_weights(y, opinions[:, k], 3), y, opinions[:, k], 3)
        torch.testing.assert_close(table, alone, atol=1e-3, rtol=0)
