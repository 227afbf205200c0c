"""HSIC against sums written out over all indices, against identities, and under the null."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from unskew.core.errors import UserError
from unskew.measure import hsic, hsic_test
from unskew.measure.hsic import hsic_of_kernels, kernel_matrix


def by_definition(k, other):
    """The U-statistic behind the unbiased estimator: averages over pairs, triples and quadruples of different rows."""
    m = len(k)
    pairs = list(itertools.permutations(range(m), 2))
    triples = list(itertools.permutations(range(m), 3))
    quadruples = list(itertools.permutations(range(m), 4))
    a = sum(k[i, j] * other[i, j] for i, j in pairs) / len(pairs)
    b = sum(k[i, j] * other[q, r] for i, j, q, r in quadruples) / len(quadruples)
    c = sum(k[i, j] * other[i, q] for i, j, q in triples) / len(triples)
    return a + b - 2 * c


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_unbiased_is_the_u_statistic(kernel):
    torch.manual_seed(0)
    u = torch.randn(8, 3, dtype=torch.float64)
    v = u[:, :2] ** 2 + torch.randn(8, 2, dtype=torch.float64)
    expected = by_definition(kernel_matrix(u, kernel, 1.5), kernel_matrix(v, kernel, 1.5))
    assert float(hsic(u, v, kernel=kernel, sigma=1.5)) == pytest.approx(float(expected), abs=1e-10)


def test_subtracting_the_diagonal_as_a_row_is_wrong_for_a_linear_kernel():
    # What public code does. It agrees for RBF, whose diagonal is constant, and not for linear: a test that tells the two apart.
    torch.manual_seed(0)
    u, v = torch.randn(8, 2, dtype=torch.float64), torch.randn(8, 2, dtype=torch.float64)

    def shortcut(k, other):
        m = len(k)
        a, b = k - k.diagonal(), other - other.diagonal()
        total = (a * b.T).sum() + a.sum() * b.sum() / ((m - 1) * (m - 2)) - 2 / (m - 2) * (a.sum(0) @ b.sum(1))
        return total / (m * (m - 3))

    rbf = [kernel_matrix(t, "rbf", 1.0) for t in (u, v)]
    assert float(shortcut(*rbf)) == pytest.approx(float(hsic_of_kernels(*rbf)), abs=1e-10)
    linear = [kernel_matrix(t, "linear") for t in (u, v)]
    assert abs(float(shortcut(*linear)) - float(by_definition(*linear))) > 0.1
    assert float(hsic_of_kernels(*linear)) == pytest.approx(float(by_definition(*linear)), abs=1e-10)


def test_biased_is_the_trace_and_for_linear_kernels_the_squared_covariance():
    torch.manual_seed(0)
    u, v = torch.randn(20, 3, dtype=torch.float64), torch.randn(20, 2, dtype=torch.float64)
    h = torch.eye(20, dtype=torch.float64) - 1 / 20
    k, other = kernel_matrix(u, "rbf", 1.0), kernel_matrix(v, "rbf", 1.0)
    expected = torch.trace(k @ h @ other @ h) / 19**2
    assert float(hsic(u, v, unbiased=False, sigma=1.0)) == pytest.approx(float(expected), abs=1e-12)
    covariance = (u - u.mean(0)).T @ (v - v.mean(0)) / 19
    assert float(hsic(u, v, kernel="linear", unbiased=False)) == pytest.approx(float(covariance.square().sum()), abs=1e-10)


def test_properties():
    torch.manual_seed(0)
    u, v = torch.randn(40, 2, dtype=torch.float64), torch.randn(40, 2, dtype=torch.float64)
    order = torch.randperm(40)
    torch.testing.assert_close(hsic(u, v), hsic(u[order], v[order]))
    torch.testing.assert_close(hsic(u, v), hsic(v, u))
    assert float(hsic(u, v, unbiased=False)) >= 0
    assert float(hsic(u, torch.ones(40, 1).double(), unbiased=False, sigma=1.0)) == pytest.approx(0, abs=1e-15)
    assert float(hsic(u, u)) > 10 * abs(float(hsic(u, v)))
    both = hsic(u.clone().requires_grad_(), v)
    assert both.requires_grad


def test_unbiased_is_zero_on_average_and_the_biased_one_is_not():
    values = {True: [], False: []}
    for seed in range(300):
        g = torch.Generator().manual_seed(seed)
        u, v = torch.randn(12, 1, generator=g).double(), torch.randn(12, 1, generator=g).double()
        for kind in values:
            values[kind].append(hsic(u, v, sigma=1.0, unbiased=kind))
    fair = torch.stack(values[True])
    assert abs(float(fair.mean())) < 3 * float(fair.std()) / 300**0.5
    assert float(torch.stack(values[False]).mean()) > 0.01


def test_p_values_are_uniform_under_the_null_and_small_otherwise():
    found = []
    for seed in range(120):
        g = torch.Generator().manual_seed(seed)
        u, v = torch.randn(25, 2, generator=g), torch.randn(25, 2, generator=g)
        found.append(hsic_test(u, v, permutations=99, seed=seed))
    assert kstest(found, "uniform").pvalue > 0.01
    g = torch.Generator().manual_seed(1)
    u = torch.randn(40, 1, generator=g)
    assert hsic_test(u, u**2 + 0.1 * torch.randn(40, 1, generator=g)) <= 0.01  # dependent, yet uncorrelated


def test_bad_input():
    with pytest.raises(UserError, match="at least 4 rows, got 3"):
        hsic(torch.rand(3, 1), torch.rand(3, 1))
    with pytest.raises(UserError, match="must be rbf or linear"):
        hsic(torch.rand(5, 1), torch.rand(5, 1), kernel="cubic")
    with pytest.raises(UserError, match="got 5 and 6"):
        hsic(torch.rand(5, 1), torch.rand(6, 1))


def test_integers_offsets_and_nan():
    torch.manual_seed(0)
    u = torch.randint(0, 200, (30, 2))
    v = torch.randint(0, 200, (30, 2))
    expected = float(hsic(u.double(), v.double(), sigma=50.5))
    assert float(hsic(u.to(torch.uint8), v.to(torch.uint8), sigma=50.5)) == pytest.approx(expected)
    assert float(hsic(u.float() + 1e4, v.float() - 1e4, sigma=50.5)) == pytest.approx(expected, rel=1e-3)
    with pytest.raises(UserError, match="NaN"):
        hsic_test(torch.full((5, 1), torch.nan), torch.rand(5, 1))


def test_arrays_will_do():
    a, b = torch.randn(20, 3), torch.randn(20, 2)
    assert float(hsic(a.numpy(), b.numpy())) == pytest.approx(float(hsic(a, b)))
    y = torch.randint(0, 3, (20, 1))
    assert float(hsic(a, y.numpy())) == pytest.approx(float(hsic(a.double(), y.double())), rel=1e-4)


def test_no_rows_are_told():
    with pytest.raises(UserError):
        hsic(np.zeros((0, 3)), np.zeros((0, 3)))


def test_a_narrow_kernel_is_not_lost_beside_the_diagonal():
    # Single precision, kernel values near e^-32 off the diagonal: the estimate must still agree with double precision.
    g = torch.Generator().manual_seed(0)
    u, v = 8 * torch.rand(64, 40, generator=g), 8 * torch.rand(64, 40, generator=g)
    exact = float(hsic(u.double(), v.double(), sigma=4.0))
    assert float(hsic(u, v, sigma=4.0)) == pytest.approx(exact, rel=1e-3, abs=0)
