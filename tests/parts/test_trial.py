"""The trial before advice: a rise that chance may have made is not advised."""

import math

import torch

from unskew.measure.explained_errors import Explained
from unskew.parts.opinion import Explanation, Opinion
from unskew.parts.trial import _decision, rise_error


def right(*verdicts):
    """Logits of two classes that are right (1) or wrong (0) about rows of class 0."""
    return torch.tensor([[1.0, 0.0] if v else [0.0, 1.0] for v in verdicts])


def opinion(low):
    found = Explanation("color:kind=mean", "mean colour", Explained(0.9, low, 0.95, 40), 0.8)
    code = torch.zeros(4, dtype=torch.long)
    return Opinion(torch.arange(4), code, code.new_empty(4, 0), torch.ones(4), ("color:kind=mean",), (found,))


def test_equal_weights_give_the_textbook_standard_error():
    plain, balanced = right(0, 0, 1, 1, 1, 0, 1, 0), right(1, 1, 1, 0, 1, 1, 1, 0)
    rise = torch.tensor([1.0, 1, 0, -1, 0, 1, 0, 0], dtype=torch.float64)
    expected = float(rise.std(correction=0)) / math.sqrt(8)
    y, w = torch.zeros(8, dtype=torch.long), torch.ones(8, dtype=torch.float64)
    assert math.isclose(rise_error(plain, balanced, y, w), expected, rel_tol=1e-12)
    assert math.isclose(rise_error(plain, balanced, y, 7 * w), expected, rel_tol=1e-12)  # a scale of the weights changes nothing


def test_a_heavy_row_is_one_row_of_greater_influence():
    y, w = torch.zeros(3, dtype=torch.long), torch.tensor([1.0, 1, 2], dtype=torch.float64)
    one = rise_error(right(0, 1, 0), right(1, 1, 1), y, w)
    rise, mean = torch.tensor([1.0, 0, 1]), 0.75
    by_hand = math.sqrt(sum((float(k) * (float(r) - mean)) ** 2 for k, r in zip(w, rise, strict=True))) / 4
    assert math.isclose(one, by_hand, rel_tol=1e-12)


def test_a_gain_within_its_error_is_not_advised():
    gains = ((0.5, 0.6), (0.3, 0.5))
    assert _decision(opinion(0.8), 40, *gains, 0.02)[0]
    supports, reason = _decision(opinion(0.8), 40, *gains, 0.11)
    assert not supports
    assert "may be chance (standard error 11.0 points)" in reason


def test_too_small_a_gain_is_not_advised_however_certain():
    supports, reason = _decision(opinion(0.8), 40, (0.5, 0.52), (0.3, 0.5), 0.001)
    assert not supports
    assert "gains too little" in reason
