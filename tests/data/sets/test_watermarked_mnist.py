"""Watermarked digits: where the mark is, how often it agrees, and one test set for all ratios."""

import pytest
import torch
from scipy.stats import binomtest

from unskew.core.errors import UserError
from unskew.data import load


def test_watermarked_digits_are_whole_where_the_mark_is_not():
    import torch.nn.functional as F

    data, grey = load("watermarked-mnist:base=digits,ratio=0.9,offset=16"), load("digits")
    large = F.interpolate(grey.inputs.x.float(), size=56, mode="bilinear", align_corners=False).round().to(torch.uint8)
    x = data.inputs.x
    assert bool((x >= large).all())
    assert torch.equal(x[:, :, 44:], large[:, :, 44:])  # 16 + 28: the mark never comes so far
    assert torch.equal(x[:, :, :, 44:], large[:, :, :, 44:])
    assert float((x != large).flatten(1).any(1).float().mean()) > 0.99
    train, test = data.rows("train"), data.rows("test")
    agrees = data.y == data.bias[:, 0]
    assert binomtest(int(agrees[train].sum()), len(train), 0.9).pvalue > 1e-3
    assert binomtest(int(agrees[test].sum()), len(test), 0.1).pvalue > 1e-3
    other = load("watermarked-mnist:base=digits,ratio=0.5,offset=16")
    assert torch.equal(other.bias[test], data.bias[test])  # one test set for all ratios
    with pytest.raises(UserError, match=r"must lie in 0\.\.28"):
        load("watermarked-mnist:base=digits,offset=40")
