"""Macro F1 against scikit-learn."""

import pytest
import torch
from sklearn.metrics import f1_score

from unskew.stats.f1 import macro_f1


def test_macro_f1_is_scikit_learns():
    g = torch.Generator().manual_seed(0)
    truth = (torch.rand(200, 6, generator=g) < 0.3).float()
    guess = (torch.rand(200, 6, generator=g) < 0.4).float()
    assert macro_f1(guess, truth) == pytest.approx(f1_score(truth.numpy(), guess.numpy(), average="macro"))
