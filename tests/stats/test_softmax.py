"""The fit of a softmax: its gradient against autograd, its optimum against scikit-learn."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tests.support.rows import rows
from unskew.stats.softmax import History, Problem, TwoClasses, fit_softmax, fit_with_risks, principal_axes


def test_gradient_of_the_loss_is_autograds():
    torch.manual_seed(0)
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 3, (30, 2))
    weight, penalty = torch.rand(30, 2, dtype=torch.float64), torch.rand(4, 1, dtype=torch.float64)
    w = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    value, gradient = Problem(x, y.T, 2 * weight.T, torch.full((2, 1), 2.0, dtype=torch.float64), penalty).loss(w.detach())
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
    w = fit_softmax(x, y[:, None], weight, (decay,), 3, tolerance=1e-9)[0, 0]
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


def two_loops(gradient, pairs, curvature):
    """L-BFGS's recursion for one problem, as Nocedal and Wright, algorithm 7.4."""
    q, alphas = gradient.clone(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    s, y = pairs[-1]
    r = (s @ y) / (y @ (y / curvature)) * q / curvature
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r = r + (alpha - y @ r / (s @ y)) * s
    return r


def test_the_stacked_steps_are_the_two_loop_recursion():
    g = torch.Generator().manual_seed(0)
    hessian = torch.randn(2, 6, 6, generator=g, dtype=torch.float64)
    hessian = hessian @ hessian.mT + torch.eye(6, dtype=torch.float64)
    curvature = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64)  # of a problem with D = 3 and C = 2
    history = History(torch.zeros(2, 3, 2, dtype=torch.float64), curvature, 3)
    pairs = [[], []]
    for k in range(5):  # more steps than the three it remembers
        s = torch.randn(2, 6, generator=g, dtype=torch.float64)
        y = torch.einsum("pij,pj->pi", hessian, s)
        if k == 3:
            y[1] = -y[1]  # a step without positive curvature is forgotten, yet takes a place
        history.add(s.view(2, 3, 2), y.view(2, 3, 2))
        for p in range(2):
            pairs[p].append((s[p], y[p]) if not (k == 3 and p == 1) else None)
        gradient = torch.randn(2, 6, generator=g, dtype=torch.float64)
        ours = history.apply(gradient.view(2, 3, 2)).flatten(1)
        for p in range(2):
            remembered = [pair for pair in pairs[p][-3:] if pair is not None]
            if pairs[p][-1] is not None:
                expected = two_loops(gradient[p], remembered, curvature.expand(3, 2).flatten())
                torch.testing.assert_close(ours[p], expected)


def test_labels_shared_by_the_problems_and_weights_of_any_type():
    x, y = rows()
    x = torch.cat([torch.ones(len(x), 1), x], 1).double()
    inside = torch.rand(len(x), 4, generator=torch.Generator().manual_seed(1)) < 0.6
    shared, risk = fit_with_risks(x, y, inside, (1e-2,), 3)
    apart = fit_softmax(x, y[:, None].expand(-1, 4), inside.double() / inside.sum(0), (1e-2,), 3)
    torch.testing.assert_close(shared, apart)
    for p in range(4):
        seen = inside[:, p]
        reached = torch.nn.functional.cross_entropy(x[seen] @ shared[0, p], y[seen])
        torch.testing.assert_close(risk[0, p], reached)


def test_a_large_set_started_from_a_part_of_it_reaches_the_same_optimum(monkeypatch):
    from unskew.stats import softmax

    x, y = rows()
    x = torch.cat([torch.ones(len(x), 1), x], 1).double()
    weight = torch.ones(len(x), 1)
    whole, risk = fit_with_risks(x, y, weight, (1e-2, 1e-4), 3, tolerance=1e-10)
    monkeypatch.setattr(softmax, "MANY", len(x))
    started, again = fit_with_risks(x, y, weight, (1e-2, 1e-4), 3, tolerance=1e-10)
    torch.testing.assert_close(again, risk, atol=1e-6, rtol=0)
    torch.testing.assert_close(started, whole, atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_two_classes_by_their_difference_are_the_softmax_of_both(dtype):
    g = torch.Generator().manual_seed(0)
    x = torch.cat([torch.ones(700, 1, dtype=dtype), torch.randn(700, 40, generator=g, dtype=dtype)], 1)
    y, weight = (torch.randint(0, 2, (3, 700), generator=g), torch.rand(3, 700, generator=g, dtype=dtype))
    total, penalty = weight.sum(1, keepdim=True), torch.rand(41, 1, generator=g, dtype=dtype)
    u = torch.randn(3, 41, 1, generator=g, dtype=dtype)
    value, gradient = TwoClasses(x, y, weight / total, total, penalty).loss(u)
    expected, slope = Problem(x, y, weight, total, penalty).loss(torch.cat([-u / 2, u / 2], 2))
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient, (slope[:, :, 1:] - slope[:, :, :1]) / 2, rtol=tolerance, atol=tolerance)
