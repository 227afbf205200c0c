"""Many linear-softmax regressions at once: one pass over the rows serves every fold, weight decay and set of labels."""

import torch
from torch import Tensor

ROWS = 8192  # rows per pass: their logits stay in the cache


def fit_softmax(
    x: Tensor, y: Tensor, weight: Tensor, decay: Tensor, num_classes: int, *, tolerance: float = 1e-6, iterations: int = 300
) -> Tensor:
    r"""The minimisers of P regularised cross-entropies that share their features.

    .. math::  L_p(W) = -\sum_i \omega_{ip} \log \mathrm{softmax}(W^\top x_i)_{y_{ip}} + \frac{\delta_p}{2} \lVert W_{1:} \rVert^2

    x (n, D) whose first column is 1 and is not penalised; y (n,) or (n, P); weight (n, P), each column summing to 1; decay (P,).
    Returns (P, D, C). L-BFGS, every problem with its own step, in coordinates where the features are white.
    """
    mean = x[:, 1:].mean(0)
    centred = x[:, 1:] - mean
    eigenvalues, vectors = torch.linalg.eigh(centred.T @ centred / len(x))
    keep = eigenvalues > eigenvalues[-1:].clamp(min=1e-30) * 1e-7  # copies and sums of other columns add nothing
    scale = eigenvalues[keep].rsqrt()
    turn = vectors[:, keep] * scale  # (D - 1, K)
    white = torch.cat([x[:, :1], centred @ turn], 1)
    penalty = torch.cat([decay.new_zeros(len(decay), 1), decay[:, None] * scale.square()], 1)  # (P, 1 + K)
    w = minimise(lambda w: softmax_loss(white, y, weight, penalty, w), white, penalty, num_classes, tolerance, iterations)
    back = torch.einsum("dk,pkc->pdc", turn, w[:, 1:])
    return torch.cat([w[:, :1] - torch.einsum("d,pdc->pc", mean, back)[:, None], back], 1)


def softmax_loss(x: Tensor, y: Tensor, weight: Tensor, penalty: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Values (P,) and gradients (P, D, C) of the regularised cross-entropies."""
    problems, width, classes = w.shape
    flat = w.permute(1, 0, 2).reshape(width, problems * classes)
    value = 0.5 * (penalty[:, :, None] * w.square()).sum((1, 2))
    gradient = torch.zeros_like(flat)
    for start in range(0, len(x), ROWS):
        part = slice(start, start + ROWS)
        rows, share = x[part], weight[part]
        logits = (rows @ flat).view(len(rows), problems, classes)
        target = (y[part] if y.ndim == 2 else y[part, None].expand(-1, problems))[:, :, None]
        normaliser = logits.logsumexp(2, keepdim=True)
        value += (share * (normaliser - logits.gather(2, target)).squeeze(2)).sum(0)
        slope = (logits - normaliser).exp_()
        slope.scatter_add_(2, target, -torch.ones_like(target, dtype=slope.dtype))
        slope *= share[:, :, None]
        gradient += rows.T @ slope.view(len(rows), -1)
    return value, gradient.view(width, problems, classes).permute(1, 0, 2) + penalty[:, :, None] * w


def minimise(loss, x: Tensor, penalty: Tensor, classes: int, tolerance: float, iterations: int, memory: int = 10) -> Tensor:  # type: ignore[no-untyped-def]
    """L-BFGS on all problems together; a problem that has arrived stands still while the others go on."""
    problems, width = penalty.shape
    w = x.new_zeros(problems, width, classes)
    curvature = (1 / classes + penalty)[:, :, None]  # of the loss at the start, coordinate by coordinate
    value, gradient = loss(w)
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    going = torch.ones(problems, dtype=torch.bool)
    for _ in range(iterations):
        direction = -_inverse_hessian(gradient, steps, curvature)
        slope = _dot(direction, gradient)
        # A direction that does not descend, from rounding, is replaced by the plain scaled gradient.
        bad = slope >= 0
        if bool(bad.any()):
            direction = torch.where(bad[:, None, None], -gradient / curvature, direction)
            slope = _dot(direction, gradient)
        size = going.to(x.dtype)
        for _ in range(20):
            trial = w + size[:, None, None] * direction
            new_value, new_gradient = loss(trial)
            fails = going & ~(new_value <= value + 1e-4 * size * slope + 1e-9 * value.abs())
            if not bool(fails.any()):
                break
            size = torch.where(fails, size / 2, size)
        moved, turned = trial - w, new_gradient - gradient
        product = _dot(moved, turned)
        fine = going & (product > 1e-12 * _dot(turned, turned))
        rho = torch.where(fine, 1 / product.clamp(min=1e-30), 0.0)  # 0 forgets the pair for that problem
        steps = [*steps, (moved, turned, rho)][-memory:]
        gain = value - new_value
        w, value, gradient = trial, new_value, new_gradient
        going = going & (gain > tolerance * value.abs().clamp(min=1e-3))
        if not bool(going.any()):
            break
    return w


def _inverse_hessian(gradient: Tensor, steps: list[tuple[Tensor, Tensor, Tensor]], curvature: Tensor) -> Tensor:
    """The two-loop recursion, for every problem at once."""
    q = gradient
    alphas = []
    for moved, turned, rho in reversed(steps):
        alpha = rho * _dot(moved, q)
        q = q - alpha[:, None, None] * turned
        alphas.append(alpha)
    scale = torch.ones_like(curvature[:, 0, 0])
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
