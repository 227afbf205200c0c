"""The de-noising rule by hand."""

import numpy as np
import pytest
import torch

from unskew.core.errors import UserError
from unskew.repairs import denoise


def test_denoise_by_hand():
    # p = (.9, .1) for all rows; labels 0 0 0 1: CE = -log .9 three times, -log .1 once.
    logits = torch.tensor([[0.9, 0.1]], dtype=torch.float64).log().expand(4, 2)
    found = denoise(logits, torch.tensor([0, 0, 0, 1]))
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert found.delta == pytest.approx((3 * -np.log(0.9) - np.log(0.1)) / (4 * entropy))
    assert found.clean.tolist() == [True, True, True, False]
    sure = denoise(torch.tensor([[90.0, 0.0], [90.0, 0.0]]), torch.tensor([0, 1]))  # no entropy at all: floored, not divided by 0
    assert bool(torch.isfinite(sure.loss / sure.entropy).all())
    assert sure.clean.tolist() == [True, False]


def test_codes_out_of_range_are_told():
    with pytest.raises(UserError):
        denoise(np.zeros((2, 3)), [0, 3])
