"""DPA where both directions are known: a model that follows the bias, one that ignores it, one that errs at random."""

import importlib
import math

import pytest
import torch

from unskew.measure import directional_amplification
from unskew.measure.directional_amplification import relative_change, to_bias, to_task, told_by
from unskew.measure.leakage import Amplification, Leakage
from unskew.stats.resample import counts

dpa = importlib.import_module("unskew.measure.directional_amplification")  # unskew.measure has a function of this name


def rows(n=6000, seed=0, aligned=0.7):
    g = torch.Generator().manual_seed(seed)
    a = torch.randint(0, 2, (n,), generator=g)
    y = torch.where(torch.rand(n, generator=g) < aligned, a, 1 - a)
    return y, a, g


def leak(value, error):
    return Leakage(value, value - 2 * error, value + 2 * error, math.nan, (), 0.5, 1000, error=error)


def test_relative_change_is_bounded_odd_and_undefined_at_nothing():
    m, d = torch.rand(50), torch.rand(50)
    torch.testing.assert_close(relative_change(m, d), -relative_change(d, m))
    assert bool((relative_change(m, d).abs() <= 1).all())
    assert math.isnan(float(relative_change(torch.tensor(-0.1), torch.tensor(0.0))))


def test_a_table_reaches_the_known_score():
    # y follows a with probability 0.7 and both are even: the best guess of y from a has a mean recall of 0.7.
    y, a, g = rows(20_000)
    half = torch.rand(20_000, generator=g) < 0.5
    assert told_by(torch.nn.functional.one_hot(y), a, half, True) == pytest.approx(0.2, abs=0.01)
    labels = torch.stack([y, torch.randint(0, 2, (20_000,), generator=g), torch.zeros_like(y)], 1)
    assert told_by(labels, a, half, False) == pytest.approx(0.1, abs=0.01)  # the mean of 0.2 and 0; the constant does not count
    assert abs(told_by(torch.nn.functional.one_hot(torch.randint(0, 2, (20_000,), generator=g)), a, half, True)) < 0.01


def test_to_task_tells_a_model_that_follows_the_bias_from_one_that_errs_at_random():
    y, a, g = rows()
    wrong = torch.rand(6000, generator=g) < 0.2
    random = torch.eye(2)[torch.where(wrong, 1 - y, y)]
    follows = torch.eye(2)[
        torch.where((a != y) & (torch.rand(6000, generator=g) < 2 / 3), a, y)
    ]  # errs on 20 %, towards the bias
    against = torch.eye(2)[
        torch.where((a == y) & (torch.rand(6000, generator=g) < 2 / 7), 1 - y, y)
    ]  # errs on 20 %, away from it
    found = [to_task(z, y, a, 0.8) for z in (random, follows, against)]
    assert found[0].low < 0 < found[0].high
    # Labels with 20 % errors at random: 0.7 * 0.8 + 0.3 * 0.2 = 0.62, so Psi_D = 0.12. Following: 0.7 + 0.2 = 0.9, Psi_M = 0.4.
    assert found[1].value == pytest.approx((0.4 - 0.12) / (0.4 + 0.12), abs=0.08)
    assert found[1].low > 0.3
    assert found[2].high < 0  # 0.7 - 0.2 = 0.5: the decisions tell nothing


def test_to_bias_by_hand_and_its_interval():
    more = Amplification(0.1, 0.0, 0.2, leak(0.8, 0.01), leak(0.7, 0.01), 0.9)
    found = to_bias(more)
    assert found.value == pytest.approx((0.3 - 0.2) / 0.5)
    # Delta method: the derivatives are 2 d / (m + d)^2 and -2 m / (m + d)^2.
    error = math.hypot(2 * 0.2, 2 * 0.3) / 0.25 * 0.01
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    nothing = to_bias(Amplification(0, 0, 0, leak(0.4, 0.01), leak(0.45, 0.01), 0.9))
    assert math.isnan(nothing.value)
    assert "neither" in nothing.reason


def test_both_directions_at_once_and_missing_values():
    y, a, _ = rows(1200)
    a[::7] = -1
    more = Amplification(0.1, 0.0, 0.2, leak(0.8, 0.01), leak(0.7, 0.01), 1.0)
    found = directional_amplification(torch.eye(2)[y], y, a, more=more)
    assert found.to_bias.value == pytest.approx(0.2)
    assert found.to_task.value == pytest.approx(0.0)  # the decisions are the labels


@pytest.mark.parametrize("single", [True, False])
def test_draws_by_counts_have_the_scores_of_the_rows_they_count(single):
    # The same draws written out: row i as often as its count says, judged by the function that takes rows.
    g = torch.Generator().manual_seed(0)
    n = 3000
    code, half = torch.randint(0, 3, (n,), generator=g), torch.rand(n, generator=g) < 0.5
    follows = (torch.rand(n, 4, generator=g) < 0.2 + 0.2 * code[:, None]).long()
    tables = (
        [torch.eye(4)[follows.sum(1).clamp(max=3)], torch.eye(4)[code]] if single else [follows.float(), follows.flip(1).float()]
    )
    got = dpa._told_in_draws(tables, code, half, single, seed=5)
    often = torch.cat([w for _, w in counts(dpa.BOOTSTRAP, n, 5)], 1).long()
    for draw in (0, 7, 199):
        rows = torch.arange(n).repeat_interleave(often[draw])
        expected = [told_by(t[rows], code[rows], half[rows], single) for t in tables]
        assert got[draw].tolist() == pytest.approx(expected, abs=1e-12)


def test_interval_by_counts_is_that_of_drawn_rows(monkeypatch):
    y, a, g = rows(4000)
    follows = torch.eye(2)[torch.where((a != y) & (torch.rand(4000, generator=g) < 0.5), a, y)]
    drawn = to_task(follows, y, a, 0.85)
    monkeypatch.setattr(dpa, "COUNTED", 1000)
    counted = to_task(follows, y, a, 0.85)
    assert counted.value == drawn.value
    # A 2.5 % quantile of 200 normal draws is known to 0.19 standard deviations; here the difference of two of them, threefold.
    spread = (drawn.high - drawn.low) / 3.92
    assert counted.low == pytest.approx(drawn.low, abs=3 * 1.42 * 0.19 * spread)
    assert counted.high == pytest.approx(drawn.high, abs=3 * 1.42 * 0.19 * spread)
