"""Explained errors against scikit-learn's area under the curve, and what stratifying by class is for."""

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score

from unskew.core.errors import UserError
from unskew.measure.explained_errors import explained_errors


def test_one_class_is_the_area_under_the_curve():
    g = torch.Generator().manual_seed(0)
    wrong = torch.rand(300, generator=g) < 0.3
    gain = torch.randn(300, generator=g) - wrong.double()
    found = explained_errors(gain, wrong, torch.zeros(300))
    assert found.value == pytest.approx(roc_auc_score(wrong.numpy(), -gain.numpy()))
    assert found.low < found.value < found.high
    assert found.wrong == int(wrong.sum())


def test_pairs_of_different_classes_do_not_count():
    # By hand: class 0 is hard (gains low, half wrong), class 1 easy. Pooled, low gains go with errors; within a class, they do not.
    y = torch.tensor([0] * 40 + [1] * 40)
    wrong = torch.tensor([True, False] * 20 + [True] + [False] * 39)
    gain = torch.where(y == 0, -1.0, 1.0)
    assert explained_errors(gain, wrong, y).value == 0.5
    assert roc_auc_score(wrong.numpy(), -gain.numpy()) > 0.7


def test_too_few_errors_say_so():
    found = explained_errors(torch.arange(50.0), torch.arange(50) < 3, torch.zeros(50))
    assert math.isnan(found.value)
    assert found.reason == "only 3 errors, 10 are needed"
    with pytest.raises(UserError, match="must be as many"):
        explained_errors(torch.arange(50.0), torch.arange(40) < 3, torch.zeros(50))
