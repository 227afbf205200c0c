"""Newton's method against scikit-learn's logistic regression, and against what L-BFGS finds."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from unskew.stats import softmax
from unskew.stats.newton import newton, worthwhile


def problem(rows=200, columns=6):
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.ones(rows, 1), torch.randn(rows, columns, generator=generator)], 1).double()
    y = (x[:, 1] - x[:, 2] + torch.randn(rows, generator=generator) > 0.3).long()
    return x, y, torch.rand(rows, 3, generator=generator).double()


def test_the_minimum_is_that_of_scikit_learn():
    x, y, weight = problem()
    share = (weight / weight.sum(0)).T
    penalty = torch.tensor([0.0] + [0.02] * 6)[:, None]
    w, value = newton(x, y[None], share, penalty, torch.zeros(3, 7, 2).double(), tolerance=1e-12)
    for k in range(3):
        # The penalty of both halves together is 0.02 / 4 of the squared difference, scikit-learn's 1 / (2 C).
        reference = LogisticRegression(C=1 / 0.01, tol=1e-10, max_iter=1000)
        reference.fit(x[:, 1:].numpy(), y.numpy(), sample_weight=share[k].numpy())
        assert (w[k, 1:, 1] - w[k, 1:, 0]).numpy() == pytest.approx(reference.coef_[0], abs=1e-4)
        logits = (x @ (w[k, :, 1] - w[k, :, 0])).numpy()
        loss = share[k].numpy() @ (np.logaddexp(0, logits) - y.numpy() * logits)
        assert float(value[k]) == pytest.approx(loss + 0.5 * 0.02 * float(w[k, 1:].square().sum()), rel=1e-7)


@pytest.mark.parametrize("separable", [False, True])
def test_both_ways_reach_the_same_risk(monkeypatch, separable):
    x, y, weight = problem()
    y = (x[:, 1] > 0).long() if separable else y
    found = softmax.fit_with_risks(x, y, weight, (1e-1, 1e-3, 1e-5), 2, tolerance=1e-9)
    monkeypatch.setattr(softmax, "worthwhile", lambda *sizes: False)
    expected = softmax.fit_with_risks(x, y, weight, (1e-1, 1e-3, 1e-5), 2, tolerance=1e-9)
    assert worthwhile(200, 7, 3, 2)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found[0][0], expected[0][0], rtol=1e-2, atol=1e-3)


def test_a_problem_without_weight_stays_finite():
    x, y, weight = problem()
    weight[:, 1] = 0
    w = softmax.fit_softmax(x, y, weight, (1e-2,), 2)
    assert bool(torch.isfinite(w).all())
