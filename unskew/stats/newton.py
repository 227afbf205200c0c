r"""Two-class regressions by Newton's method: for few rows and columns, a fifth of the steps of L-BFGS, each of fewer operations.

.. math::  L_p(u) = \sum_i \omega_{ip} \big(\log(1 + e^{z_i}) - t_{ip} z_i\big) + \tfrac14 \textstyle\sum_d \lambda_d u_d^2, \qquad
           z = X u, \qquad u \leftarrow u - s\, H^{-1} \nabla L

With two classes, the softmax depends on u = w_1 - w_0 alone, and the least penalty has w_1 = -w_0 = u / 2. s is halved until the
value falls.

Source: iteratively reweighted least squares; Green, "Iteratively reweighted least squares for maximum likelihood estimation", 1984.
Differs: many problems that share their rows are solved together.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

NUMBERS = 160_000  # problems x rows x columns, at most: beyond it, steps without a matrix of second derivatives take less time
PRODUCTS = 20_000_000  # of that matrix
RIDGE = 1e-10  # of the mean curvature: keeps a direction without any from failing


def worthwhile(rows: int, columns: int, problems: int, classes: int) -> bool:
    """Whether Newton's method takes less time than L-BFGS.

    >>> worthwhile(300, 40, 5, 2), worthwhile(300, 40, 5, 3), worthwhile(10_000, 300, 5, 2)
    (True, False, False)
    """
    numbers = problems * rows * columns
    return classes == 2 and numbers <= NUMBERS and numbers * columns <= PRODUCTS


def newton(
    x: Tensor, y: Tensor, share: Tensor, penalty: Tensor, start: Tensor, *, tolerance: float, iterations: int = 50
) -> tuple[Tensor, Tensor]:
    """Where P problems arrive (P, D, 2), and their values (P,), penalty included.

    x is (n, D), y (P or 1, n) has classes 0 and 1, share (P, n) has weights that sum to 1, penalty is (D, 1), start (P, D, 2).
    """
    rows, target, weight = x.double(), y.double(), share.double()
    half = penalty.double().T / 2  # (1, D)
    u = (start[:, :, 1] - start[:, :, 0]).double()
    value, z = _value(rows, target, weight, half, u)
    for _ in range(iterations):
        p = z.sigmoid()
        gradient = (weight * (p - target)) @ rows + half * u
        curvature = (rows.T * (weight * p * (1 - p))[:, None]) @ rows
        curvature.diagonal(dim1=1, dim2=2).add_(half + RIDGE * curvature.diagonal(dim1=1, dim2=2).mean(1, keepdim=True) + 1e-30)
        step = torch.cholesky_solve(gradient[:, :, None], torch.linalg.cholesky_ex(curvature)[0])[:, :, 0]
        slope = (gradient * step).sum(1)
        size = torch.ones_like(value)
        for _ in range(20):
            trial = u - size[:, None] * step
            new, z = _value(rows, target, weight, half, trial)
            fails = ~(new <= value - 1e-4 * size * slope + 1e-12 * value.abs())
            if not bool(fails.any()):
                break
            size = torch.where(fails, size / 2, size)
        gained = value - new
        u, value = trial, new
        if not bool((gained > tolerance * new.clamp(min=0.1)).any()):
            break
    return torch.stack([-u / 2, u / 2], 2).to(start.dtype), value


def _value(rows: Tensor, target: Tensor, weight: Tensor, half: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    z = u @ rows.T
    return (weight * (F.softplus(z) - target * z)).sum(1) + (half * u.square()).sum(1) / 2, z
