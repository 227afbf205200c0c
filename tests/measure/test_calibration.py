"""Expected calibration error by hand, and an interval that finds a calibrated model calibrated."""

import importlib
import math

import pytest
import torch

from unskew.core.errors import UserError
from unskew.core.matrix import spilled
from unskew.measure import calibration, calibration_by_bias

module = importlib.import_module("unskew.measure.calibration")  # unskew.measure has a function of this name


def logits_of(p):
    """Two logits whose softmax gives the second class probability p."""
    p = torch.as_tensor(p, dtype=torch.float64)
    return torch.stack([torch.zeros_like(p), (p / (1 - p)).log()], 1)


def test_two_bins_by_hand():
    # Six rows of confidence .95, five right; four of confidence .65, two right: (|5 - 5.7| + |2 - 2.6|) / 10.
    logits = logits_of([0.95] * 6 + [0.65] * 4)
    y = torch.tensor([1, 1, 1, 1, 1, 0, 1, 1, 0, 0])
    found = calibration(logits, y)
    assert found.error.value == pytest.approx(0.13)
    assert [(b.low, b.high, b.n) for b in found.bins] == [(0.6, 0.7, 4), (0.9, 1.0, 6)]
    assert [b.accuracy for b in found.bins] == pytest.approx([0.5, 5 / 6])
    assert found.confidence == pytest.approx(0.83)
    assert found.accuracy == 0.7
    assert found.error.low <= 0.13 <= found.error.high


def test_labels_are_pooled_and_their_own_probability_counts():
    # Probabilities .9 and .2 for two labels; rows have (1, 0), (1, 1): |2 - 1.8| in one bin, |1 - .4| in the other, of 4.
    logits = torch.tensor([[0.9, 0.2]] * 2, dtype=torch.float64).logit()
    assert calibration(logits, torch.tensor([[1, 0], [1, 1]])).error.value == pytest.approx((0.2 + 0.6) / 4)


@pytest.mark.parametrize("too_sure", [0.0, 0.1])
def test_the_interval_covers_the_truth(too_sure):
    """100 rows that are right as often as they say, or 10 points less often: by construction that is the true error."""
    covered, g = 0, torch.Generator().manual_seed(5)
    for seed in range(300):
        p = 0.5 + 0.495 * torch.rand(100, generator=g, dtype=torch.float64)
        y = (torch.rand(100, generator=g, dtype=torch.float64) < p - too_sure).long()
        e = calibration(logits_of(p), y, draws=100, seed=seed).error
        covered += e.low <= too_sure <= e.high
    assert covered / 300 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 300)  # three standard errors below 95 %
    sure = calibration(logits_of([0.99] * 200), torch.tensor([0, 1] * 100))  # half right: 49 points too sure
    assert sure.error.value == pytest.approx(0.49)
    # One bin, so the noise is that of a proportion: 1.96 standard errors of one half in 200 rows.
    assert sure.error.low == pytest.approx(0.49 - 1.96 * math.sqrt(0.25 / 200), abs=0.01)


def test_by_bias_value():
    logits = logits_of([0.9] * 100 + [0.9] * 100 + [0.9] * 20)
    y = torch.tensor([1] * 90 + [0] * 10 + [1] * 50 + [0] * 50 + [0] * 20)
    bias = torch.tensor([0] * 100 + [1] * 100 + [2] * 20)
    found, gap = calibration_by_bias(logits, y, bias, values=["p", "q", "r", "s"], name="site")
    assert [found[v].error.value for v in "pqr"] == pytest.approx([0.0, 0.4, 0.9])
    assert found["s"].error.reason == "no row with site s"
    assert math.isnan(found["s"].error.value)
    assert gap.between == ("q", "p")  # r has fewer than 30 rows
    assert gap.estimate.value == pytest.approx(0.4)
    assert 0.2 < gap.estimate.low < 0.4 < gap.estimate.high < 0.6
    assert found["r"].json()["small"]
    _, none = calibration_by_bias(logits[:100], y[:100], bias[:100], values=["p", "q"], name="site")
    assert none.estimate.reason == "fewer than two values of site have 30 rows"


def test_the_same_seed_gives_the_same_interval():
    torch.manual_seed(0)
    logits, y = torch.randn(80, 3), torch.randint(0, 3, (80,))
    assert calibration(logits, y) == calibration(logits, y)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="needs logits"):
        calibration(torch.zeros(3), torch.zeros(3))


@pytest.mark.parametrize("several", [False, True])
def test_by_counts_the_error_is_the_same_and_the_interval_that_of_drawn_rows(several, monkeypatch, tmp_path):
    g = torch.Generator().manual_seed(2)
    n = 4000
    p = 0.5 + 0.495 * torch.rand(n, generator=g, dtype=torch.float64)
    y = (torch.rand(n, generator=g, dtype=torch.float64) < p - 0.1).long()
    logits, y = (torch.stack([p, 1 - p], 1).logit(), torch.stack([y, 1 - y], 1)) if several else (logits_of(p), y)
    logits, bias = logits.float(), torch.arange(n) % 2
    drawn, gap = calibration_by_bias(logits, y, bias)
    monkeypatch.setattr(module, "COUNTED", 1000)
    ways = [calibration_by_bias(logits, y, bias), calibration_by_bias(spilled(logits, tmp_path), y, bias)]
    if not several:  # what is kept of predictions that are not held: the class, and how sure it is
        sure, guess = logits.double().softmax(1).max(1)
        ways.append(calibration_by_bias(guess, y, bias, sure=sure))
    for found, between in ways:
        assert between.estimate.value == pytest.approx(gap.estimate.value)
        for value, expected in drawn.items():
            got = found[value]
            assert got.error.value == pytest.approx(expected.error.value)
            assert (got.confidence, got.accuracy) == pytest.approx((expected.confidence, expected.accuracy))
            assert [b.n for b in got.bins] == [b.n for b in expected.bins]
            # A 95 % quantile of 400 draws is known to about a tenth of the standard deviation, itself about half of it.
            assert got.error.high - got.error.value == pytest.approx(expected.error.high - expected.error.value, rel=0.2)
