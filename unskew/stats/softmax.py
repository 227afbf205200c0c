"""Many linear-softmax regressions at once: one pass over the rows serves every fold, weight decay and set of labels."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
ROWS = 8192  # rows per pass: their logits stay in the cache


def fit_softmax(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    decays: Sequence[float],
    num_classes: int,
    *,
    tolerance: float | None = None,
    iterations: int = 300,
) -> Tensor:
    r"""The minimisers of P cross-entropies that share their features, for each of several weight decays.

    .. math::  L_{p\delta}(W) = -\sum_i \omega_{ip} \log \mathrm{softmax}(W^\top x_i)_{y_{ip}} + \frac{\delta}{2} \lVert W_{1:} \rVert^2

    The first column of x (n, D) is 1 and not penalised; y and weight are (n, P), each column of weights summing to 1. Returns
    (decays, P, D, C). L-BFGS on whitened features, from the largest decay, whose solution is near 0, to the smallest, each
    starting from the previous solution.
    """
    mean = x[:, 1:].mean(0)
    centred = x[:, 1:] - mean
    eigenvalues, vectors = principal_axes(centred)
    scale = eigenvalues.rsqrt()
    turn = vectors * scale  # (D - 1, K)
    white = torch.cat([x[:, :1], centred @ turn], 1)
    solutions = {}
    # Converged: the relative gain of a step is below this. With many rows, 1e-5 gives the risk to a ten-thousandth.
    if tolerance is None:
        tolerance = 1e-5 if len(x) > 20_000 or x.dtype == torch.float32 else 1e-9
    w = white.new_zeros(y.shape[1], white.shape[1], num_classes)
    for decay in sorted(set(decays), reverse=True):
        penalty = torch.cat([scale.new_zeros(1), decay * scale.square()])[:, None]  # (1 + K, 1)

        def loss(w: Tensor, which: Tensor, penalty: Tensor = penalty) -> tuple[Tensor, Tensor]:
            return softmax_loss(white, y[:, which], weight[:, which], penalty, w)

        w = minimise(loss, w, 1 / num_classes + penalty, tolerance=tolerance, iterations=iterations)
        back = torch.einsum("dk,pkc->pdc", turn, w[:, 1:])
        solutions[decay] = torch.cat([w[:, :1] - torch.einsum("d,pdc->pc", mean, back)[:, None], back], 1)
    return torch.stack([solutions[decay] for decay in decays])


def principal_axes(centred: Tensor) -> tuple[Tensor, Tensor]:
    """Variances (K,) and axes (D, K) of the rows (n, D), without axes that are linear combinations of others.

    With more columns than rows they come from the n x n matrix of products, which has the same variances.
    """
    rows, columns = centred.shape
    wide = columns > rows
    products = (centred @ centred.T if wide else centred.T @ centred) / rows
    try:
        values, vectors = torch.linalg.eigh(products)
    except RuntimeError:  # torch's LinAlgError: single precision does not converge on nearly repeated values
        values, vectors = (t.to(centred.dtype) for t in torch.linalg.eigh(products.double()))
    keep = values > values[-1:].clamp(min=1e-30) * (1e-6 if wide and centred.dtype == torch.float32 else 1e-7)
    values, vectors = values[keep], vectors[:, keep]
    return values, centred.T @ vectors / (rows * values).sqrt() if wide else vectors


def softmax_loss(x: Tensor, y: Tensor, weight: Tensor, penalty: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Values (P,) and gradients (P, D, C) of the regularised cross-entropies."""
    problems, width, classes = w.shape
    flat = w.permute(1, 0, 2).reshape(width, problems * classes)
    value = 0.5 * (penalty * w.square()).sum((1, 2))
    gradient = torch.zeros_like(flat)
    for start in range(0, len(x), ROWS):
        part = slice(start, start + ROWS)
        rows, share = x[part], weight[part]
        logits = (rows @ flat).view(len(rows), problems, classes)
        target = y[part][:, :, None]
        normaliser = logits.logsumexp(2, keepdim=True)
        value += (share * (normaliser - logits.gather(2, target)).squeeze(2)).sum(0)
        slope = (logits - normaliser).exp_()
        slope.scatter_add_(2, target, -torch.ones_like(target, dtype=slope.dtype))
        slope *= share[:, :, None]
        gradient += rows.T @ slope.view(len(rows), -1)
    return value, gradient.view(width, problems, classes).permute(1, 0, 2) + penalty * w


def minimise(loss: Loss, start: Tensor, curvature: Tensor, *, tolerance: float, iterations: int, memory: int = 10) -> Tensor:
    """L-BFGS on P problems together, from `start` (P, D, C), given the curvature of each coordinate (D, 1).

    `loss(w, which)` returns values and gradients of the problems `which`. Converged problems are no longer computed.
    """
    arrived = start.clone()
    which = torch.arange(len(start))
    w = start
    value, gradient = loss(w, which)
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    for _ in range(iterations):
        direction = -_inverse_hessian(gradient, steps, curvature)
        slope = _dot(direction, gradient)
        # A direction that does not descend, because of rounding, is replaced by the scaled gradient.
        bad = slope >= 0
        if bool(bad.any()):
            direction = torch.where(bad[:, None, None], -gradient / curvature, direction)
            slope = _dot(direction, gradient)
        size = torch.ones_like(value)
        for _ in range(20):
            trial = w + size[:, None, None] * direction
            new_value, new_gradient = loss(trial, which)
            fails = ~(new_value <= value + 1e-4 * size * slope + 1e-9 * value.abs())
            if not bool(fails.any()):
                break
            size = torch.where(fails, size / 2, size)
        moved, turned = trial - w, new_gradient - gradient
        product = _dot(moved, turned)
        rho = torch.where(product > 1e-12 * _dot(turned, turned), 1 / product.clamp(min=1e-30), 0.0)  # 0 forgets the pair
        steps = [*steps, (moved, turned, rho)][-memory:]
        going = value - new_value > tolerance * new_value.abs().clamp(min=1e-3)
        w, value, gradient = trial, new_value, new_gradient
        arrived[which] = w
        if not bool(going.any()):
            break
        if int(going.sum()) <= 0.8 * len(going):
            which, w, value, gradient = which[going], w[going], value[going], gradient[going]
            steps = [(m[going], t[going], r[going]) for m, t, r in steps]
    return arrived


def _inverse_hessian(gradient: Tensor, steps: list[tuple[Tensor, Tensor, Tensor]], curvature: Tensor) -> Tensor:
    """The two-loop recursion, for every problem at once."""
    q = gradient
    alphas = []
    for moved, turned, rho in reversed(steps):
        alpha = rho * _dot(moved, q)
        q = q - alpha[:, None, None] * turned
        alphas.append(alpha)
    scale = gradient.new_ones(len(gradient))
    if steps:
        moved, turned, rho = steps[-1]
        inner = _dot(turned, turned / curvature)
        scale = torch.where((rho > 0) & (inner > 0), _dot(moved, turned) / inner.clamp(min=1e-30), scale)
    r = scale[:, None, None] * q / curvature
    for (moved, turned, rho), alpha in zip(steps, reversed(alphas), strict=True):
        beta = rho * _dot(turned, r)
        r = r + (alpha - beta)[:, None, None] * moved
    return r


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum((1, 2))
