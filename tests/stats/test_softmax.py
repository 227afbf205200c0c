"""The fit of a softmax: its gradient against autograd, its optimum against scikit-learn."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tests.support.rows import rows
from unskew.stats.softmax import fit_softmax, principal_axes, softmax_loss


def test_gradient_of_the_loss_is_autograds():
    torch.manual_seed(0)
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 3, (30, 2))
    weight, penalty = torch.rand(30, 2, dtype=torch.float64), torch.rand(4, 1, dtype=torch.float64)
    w = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    value, gradient = softmax_loss(x, y, weight, penalty, w.detach())
    expected = []
    for p in range(2):
        rows = torch.nn.functional.cross_entropy(x @ w[p], y[:, p], reduction="none")
        expected.append((weight[:, p] * rows).sum() + 0.5 * (penalty * w[p].square()).sum())
    torch.testing.assert_close(value, torch.stack(expected).detach())
    (reference,) = torch.autograd.grad(sum(expected), w)
    torch.testing.assert_close(gradient, reference)


@pytest.mark.parametrize("decay", [1e-1, 1e-3, 1e-5])
def test_the_fit_is_scikit_learns(decay):
    x, y = rows()
    x = torch.cat([torch.ones(len(x), 1), x], 1).double()
    weight = torch.full((len(x), 1), 1 / len(x), dtype=torch.float64)
    w = fit_softmax(x, y[:, None], weight, (decay,), 3)[0, 0]
    model = LogisticRegression(C=1 / (decay * len(x)), tol=1e-10, max_iter=5000).fit(x[:, 1:].numpy(), y.numpy())
    ours = torch.nn.functional.log_softmax(x @ w, 1)
    torch.testing.assert_close(ours, torch.from_numpy(model.predict_log_proba(x[:, 1:].numpy())), atol=2e-3, rtol=0)


def test_principal_axes_are_those_of_the_singular_values():
    g = torch.Generator().manual_seed(0)
    for shape in ((40, 7), (7, 40)):
        x = torch.randn(*shape, generator=g, dtype=torch.float64)
        x = x - x.mean(0)
        values, axes = principal_axes(x)
        singular = torch.linalg.svdvals(x).square() / len(x)
        torch.testing.assert_close(values.flip(0), singular[singular > 1e-7 * singular[0]])
        torch.testing.assert_close(axes.T @ axes, torch.eye(len(values), dtype=torch.float64), atol=1e-9, rtol=0)
        torch.testing.assert_close((x @ axes).square().mean(0), values)
