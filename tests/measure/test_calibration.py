"""Expected calibration error by hand, and an interval that finds a calibrated model calibrated."""

import math

import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure import calibration, calibration_by_bias


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
