r"""HSIC: how far two representations of the same rows are from being independent.

With the kernel matrices K of u and L of v, and K~, L~ the same with zero diagonals:

.. math::
    \mathrm{HSIC}_1 = \frac{1}{m(m-3)} \Big[ \mathrm{tr}(\tilde K \tilde L)
      + \frac{(1^\top \tilde K 1)(1^\top \tilde L 1)}{(m-1)(m-2)} - \frac{2}{m-2} 1^\top \tilde K \tilde L 1 \Big],
    \qquad
    \mathrm{HSIC}_0 = \frac{\mathrm{tr}(K H L H)}{(m-1)^2}, \quad H = I - \tfrac1m 1 1^\top

==========  ============================================================================================
HSIC_1      unbiased=True: expectation 0 for independent u and v, may be negative, needs 4 rows
HSIC_0      unbiased=False: never negative, biased upwards by O(1/m)
kernel      "rbf": exp(-|a - b|^2 / (2 sigma^2)), sigma fixed or "median" of the pairwise distances; "linear": a . b
==========  ============================================================================================

The test permutes the rows of v: p = (1 + #{permuted >= observed}) / (1 + permutations), which is uniform under independence.

Source: Song, Smola, Gretton, Bedo, Borgwardt, "Feature selection via dependence maximization", JMLR 2012, equation 5; Gretton et
al., ALT 2005 (biased form); as used by Bahng et al., ICML 2020.
Differs: the diagonal is set to zero. The code released with ReBias subtracts the diagonal as a row instead, which is harmless for
the RBF kernel and wrong for any kernel whose diagonal is not constant.
"""

import math

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream


def kernel_matrix(a: Tensor, kernel: str = "rbf", sigma: float | str = "median") -> Tensor:
    """(m, m) kernel values of the rows of `a`."""
    a = torch.as_tensor(a)
    if not len(a):
        raise UserError("HSIC needs rows of finite numbers, got 0 rows")
    a = a.reshape(len(a), -1)
    a = a if a.is_floating_point() else a.double()
    if not len(a) or not bool(torch.isfinite(a).all()):
        raise UserError(f"HSIC needs rows of finite numbers, got {len(a)} rows" + (" with NaN or infinity" if len(a) else ""))
    if kernel == "linear":
        return a @ a.T
    if kernel != "rbf":
        raise UserError(f"kernel={kernel!r}: must be rbf or linear")
    a = a - a.detach().mean(0)  # same distances, without the rounding errors of large offsets
    norm = a.square().sum(1)
    squared = torch.addmm(norm[:, None] + norm[None], a, a.T, alpha=-2).clamp(min=0)
    # Rounding makes the distance of a row to itself slightly different from 0.
    squared = torch.diagonal_scatter(squared, squared.new_zeros(len(a)))
    if sigma == "median":
        off = squared.detach()[~torch.eye(len(a), dtype=torch.bool, device=a.device)]
        width = off.median().clamp(min=1e-12).sqrt() if off.numel() else squared.new_ones(())
    elif isinstance(sigma, (int, float)) and sigma > 0:
        width = squared.new_tensor(float(sigma))
    else:
        raise UserError(f"sigma={sigma!r}: must be a positive number or 'median'")
    return torch.exp(-squared / (2 * width.square()))


def hsic_of_kernels(k: Tensor, other: Tensor, unbiased: bool = True) -> Tensor:
    """HSIC from two kernel matrices of the same rows."""
    kind = torch.promote_types(k.dtype, other.dtype)  # features may be in single precision, labels integers
    k, other = k.to(kind), other.to(kind)
    m = len(k)
    if not unbiased:
        centred = k - k.mean(0, keepdim=True) - k.mean(1, keepdim=True) + k.mean()
        return (centred * other).sum() / (m - 1) ** 2
    if m < 4:
        raise UserError(f"unbiased HSIC needs at least 4 rows, got {m}")
    # Not by subtracting the diagonal from the sums: beside it, what a narrow kernel leaves of the rest would be lost to rounding.
    a, b = (torch.diagonal_scatter(matrix, matrix.new_zeros(m)) for matrix in (k, other))
    rows_a, rows_b = a.sum(1), b.sum(1)
    trace = torch.einsum("ij,ij->", a, b)
    product = trace + rows_a.sum() * rows_b.sum() / ((m - 1) * (m - 2)) - 2 / (m - 2) * (rows_a @ rows_b)
    return product / (m * (m - 3))


def hsic(
    u: Tensor,
    v: Tensor,
    kernel: str = "rbf",
    unbiased: bool = True,
    sigma: float | str | tuple[float | str, float | str] = "median",
) -> Tensor:
    """HSIC of two representations of the same rows; differentiable. `sigma` may be a pair, one for each.

    >>> u = torch.tensor([[0.0], [1.0], [2.0], [3.0]], dtype=torch.float64)
    >>> float(hsic(u, u, kernel="linear", unbiased=False))  # the variance 5/3, squared
    2.7777777777777777
    """
    if len(u) != len(v):
        raise UserError(f"HSIC needs the same rows twice, got {len(u)} and {len(v)} rows")
    one, two = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    return hsic_of_kernels(kernel_matrix(u, kernel, one), kernel_matrix(v, kernel, two), unbiased)


def hsic_test(
    u: Tensor, v: Tensor, kernel: str = "rbf", sigma: float | str = "median", permutations: int = 199, seed: int = 0
) -> float:
    """p-value of the permutation test of independence."""
    if len(u) != len(v):
        raise UserError(f"HSIC needs the same rows twice, got {len(u)} and {len(v)} rows")
    k, other = kernel_matrix(u, kernel, sigma), kernel_matrix(v, kernel, sigma)
    m = len(k)
    # With K centred once, the biased statistic of a permutation is one sum of products.
    centred = k - k.mean(0, keepdim=True) - k.mean(1, keepdim=True) + k.mean()
    observed = (centred * other).sum()
    generator = stream(seed, "hsic")
    larger = 0
    for _ in range(permutations):
        order = torch.randperm(m, generator=generator).to(k.device)
        larger += bool((centred * other[order][:, order]).sum() >= observed)
    return (1 + larger) / (1 + permutations)


FUNCTIONS = (
    hsic,
    hsic_test,
)
RANGE = (-math.inf, math.inf)
HIGHER = "the two representations are more dependent; 0 if independent"
