"""Many linear-softmax regressions at once: one pass over the rows serves every fold, weight decay and set of labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.rng import stream
from unskew.core.threads import threads_for
from unskew.stats.newton import newton, worthwhile

PASS = 130_000  # logits computed at once: they stay in the cache
WORSE = 1.05  # times the least held-out risk so far: smaller decays are not tried
MANY = 100_000  # from this many rows on, a part of them is fitted first


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
    """The solutions (decays, P, D, C) of `fit_with_risks`."""
    return fit_with_risks(x, y, weight, decays, num_classes, tolerance=tolerance, iterations=iterations)[0]


def fit_with_risks(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    decays: Sequence[float],
    num_classes: int,
    *,
    tolerance: float | None = None,
    iterations: int = 300,
    judged: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The minimisers of P cross-entropies that share their features, for each of several weight decays.

    .. math::  L_{p\delta}(W) = -\sum_i \omega_{ip} \log \mathrm{softmax}(W^\top x_i)_{y_{ip}} + \frac{\delta}{2} \lVert W_{1:} \rVert^2

    The first column of x (n, D) is 1 and not penalised. y is (n, P), or (n,) if the problems share their labels; weight is
    (n, P), of any type, each column scaled to sum to 1. Returns (decays, P, D, C) and the cross-entropies (decays, P) reached,
    without the penalty. L-BFGS (for two classes and few rows, Newton's method) on whitened features, from the largest decay, whose
    solution is near 0, to the smallest, each starting from the previous solution. With many rows a part of them is fitted first, and
    its solutions are the starts.
    With `judged` (n, P), weights of held-out rows, decays below one whose held-out risk is clearly worse than that of a larger one
    are not fitted: they only follow the noise more closely, and take most of the time. They are given the last solution.
    """
    with threads_for(x.numel()):
        return _fit(x, y, weight, decays, num_classes, tolerance, iterations, judged)


def _fit(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    decays: Sequence[float],
    num_classes: int,
    tolerance: float | None,
    iterations: int,
    judged: Tensor | None,
) -> tuple[Tensor, Tensor]:
    mean = x[:, 1:].mean(0)
    eigenvalues, vectors = principal_axes(x[:, 1:] - mean)
    scale = eigenvalues.rsqrt()
    turn = vectors * scale  # (D - 1, K)
    white = torch.cat([x[:, :1], (x[:, 1:] - mean) @ turn], 1)
    labels, shares = (y[None] if y.ndim == 1 else y.T.contiguous()), weight.T.contiguous()
    # Converged: the relative gain of a step is below this. With many rows, 1e-5 gives the risk to a ten-thousandth.
    if tolerance is None:
        tolerance = 1e-5 if len(x) > 20_000 or x.dtype == torch.float32 else 1e-6
    zero = white.new_zeros(weight.shape[1], white.shape[1], num_classes)
    few = worthwhile(len(white), white.shape[1], weight.shape[1], num_classes)
    solved: dict[float, tuple[Tensor, Tensor]] = {}
    for rows in (None,) if len(x) < MANY else (_some(len(x)), None):
        part = (white, labels, shares) if rows is None else (white[rows], labels[:, rows], shares[:, rows])
        total = part[2].sum(1, keepdim=True, dtype=torch.float64).clamp(min=1e-300).to(x.dtype)
        w, least, latest = zero, float("inf"), None
        for decay in sorted(set(decays), reverse=True):
            if latest is not None:
                solved[decay] = latest
                continue
            penalty = torch.cat([scale.new_zeros(1), decay * scale.square()])[:, None]  # (1 + K, 1)
            start = solved[decay][0] if decay in solved else w
            if few:
                w, value = newton(*part[:2], part[2] / total, penalty, start, tolerance=tolerance)
            elif num_classes == 2 and x.dtype == torch.float64:  # in single precision, other rounding may stop it a step earlier
                two = TwoClasses(*part[:2], part[2] / total, total, penalty)
                u, value = minimise(two, _difference(start), 0.25 + penalty / 2, tolerance=tolerance, iterations=iterations)
                w = torch.cat([-u / 2, u / 2], 2)
            else:
                problem = Problem(*part, total, penalty)
                w, value = minimise(problem, start, 1 / num_classes + penalty, tolerance=tolerance, iterations=iterations)
            solved[decay] = w, value - 0.5 * (penalty * w.square()).sum((1, 2), dtype=torch.float64)
            if judged is not None and rows is None:
                risk = float(Problem(white, labels, judged.T, *_judging(judged, penalty)).loss(w)[0].mean())
                latest, least = solved[decay] if risk > WORSE * least else None, min(risk, least)
    stacked = torch.stack([solved[decay][0] for decay in decays])
    back = torch.einsum("dk,epkc->epdc", turn, stacked[:, :, 1:])
    constant = stacked[:, :, :1] - torch.einsum("d,epdc->epc", mean, back)[:, :, None]
    return torch.cat([constant, back], 2), torch.stack([solved[decay][1] for decay in decays])


def _judging(judged: Tensor, penalty: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of weights (P, 1), and no penalty."""
    return judged.sum(0).clamp(min=1e-300)[:, None], torch.zeros_like(penalty)


def _some(rows: int) -> Tensor:
    """Random rows, in order, to start from."""
    return torch.randperm(rows, generator=stream(0, "first fit", rows))[: MANY // 5].sort().values


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
    keep = values > values[-1:].clamp(min=1e-30) * (1e-6 if centred.dtype == torch.float32 else 1e-7)
    values, vectors = values[keep], vectors[:, keep]
    return values, centred.T @ vectors / (rows * values).sqrt() if wide else vectors


@dataclass(frozen=True, slots=True)
class Problem:
    """P regularised cross-entropies on the same rows: features (n, D), labels (P or 1, n), weights (P, n) with their
    sums (P, 1), penalty (D, 1)."""

    x: Tensor
    y: Tensor
    weight: Tensor
    total: Tensor
    penalty: Tensor

    def only(self, which: Tensor) -> "Problem":
        y = self.y if len(self.y) == 1 else self.y[which]
        return type(self)(self.x, y, self.weight[which], self.total[which], self.penalty)

    def loss(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Values (P,), in double precision, and gradients (P, D, C) at w (P, D, C).

        Logits are laid out (P, C, rows): a sum over few classes is then as fast as one over rows.
        """
        problems, width, classes = w.shape
        flat = w.transpose(1, 2).reshape(problems * classes, width)
        value = 0.5 * (self.penalty * w.square()).sum((1, 2), dtype=torch.float64)
        gradient = torch.zeros_like(flat)
        step = max(256, PASS // (problems * classes))
        for start in range(0, len(self.x), step):
            part = slice(start, start + step)
            rows, share = self.x[part], self.weight[:, part] / self.total
            logits = (flat @ rows.T).view(problems, classes, len(rows))
            target = self.y[:, None, part].expand(problems, 1, -1)
            top = logits.amax(1, keepdim=True)
            logits -= top
            picked = logits.gather(1, target).squeeze(1)
            slope = logits.exp_()
            normaliser = slope.sum(1)
            value += torch.einsum("pn,pn->p", share, normaliser.log() - picked)
            slope *= (share / normaliser)[:, None]
            slope.scatter_add_(1, target, -share[:, None])
            gradient.addmm_(slope.view(-1, len(rows)), rows)
        return value, gradient.view(problems, classes, width).transpose(1, 2) + self.penalty * w


class TwoClasses(Problem):
    """The same for two classes by u = w_1 - w_0 alone, (P, D, 1), with w_1 = -w_0 = u / 2, as in `newton`: half the logits, and the
    same steps. Weights are already scaled to sum to 1."""

    __slots__ = ()

    def loss(self, w: Tensor) -> tuple[Tensor, Tensor]:
        flat = w[:, :, 0].contiguous()
        value = 0.25 * (self.penalty * w.square()).sum((1, 2), dtype=torch.float64)
        gradient = torch.zeros_like(flat)
        step = max(256, PASS // len(flat))
        for start in range(0, len(self.x), step):
            part = slice(start, start + step)
            rows, share, target = self.x[part], self.weight[:, part], self.y[:, part]
            logits = flat @ rows.T
            value += torch.einsum("pn,pn->p", share, F.softplus(logits, threshold=40) - target * logits)
            gradient.addmm_(share * (logits.sigmoid_() - target), rows)
        return value, gradient[:, :, None] + self.penalty / 2 * w


def _difference(w: Tensor) -> Tensor:
    """(P, D, 1) what tells two classes apart, of (P, D, 2)."""
    return w[:, :, 1:] - w[:, :, :1]


def minimise(
    problem: Problem, start: Tensor, curvature: Tensor, *, tolerance: float, iterations: int, memory: int = 10
) -> tuple[Tensor, Tensor]:
    """L-BFGS on P problems together, from `start` (P, D, C), given the curvature of each coordinate (D, 1).

    Returns where each arrived, and its value there. Converged problems are no longer computed.
    """
    arrived, reached = start.clone(), start.new_zeros(len(start), dtype=torch.float64)
    which = torch.arange(len(start))
    w = start
    value, gradient = problem.loss(w)
    history = History(w, curvature, memory)
    slack = 1e-9 if w.dtype == torch.float64 else 1e-7
    for _ in range(iterations):
        direction = -history.apply(gradient)
        slope = _dot(direction, gradient)
        # A direction that does not descend, because of rounding, is replaced by the scaled gradient.
        bad = ~(slope < 0)
        if bool(bad.any()):
            direction = torch.where(bad[:, None, None], -gradient / curvature, direction)
            slope = _dot(direction, gradient)
        size = torch.ones_like(value)
        for _ in range(20):
            trial = w + size.to(w.dtype)[:, None, None] * direction
            new_value, new_gradient = problem.loss(trial)
            fails = ~(new_value <= value + 1e-4 * size * slope + slack * value.abs())
            if not bool(fails.any()):
                break
            size = torch.where(fails, size / 2, size)
        history.add(trial - w, new_gradient - gradient)
        going = value - new_value > tolerance * new_value.abs().clamp(min=0.1)
        w, value, gradient = trial, new_value, new_gradient
        arrived[which], reached[which] = w, value
        if not bool(going.any()):
            break
        if int(going.sum()) <= 0.8 * len(going):
            which, w, value, gradient = which[going], w[going], value[going], gradient[going]
            problem = problem.only(going)
            history.only(going)
    return arrived, reached


class History:
    r"""The last steps s and changes of gradient y of P problems, stacked, and the inverse Hessian that they describe.

    .. math::  H g = H_0 g + \begin{pmatrix} S & H_0 Y \end{pmatrix}
               \begin{pmatrix} R^{-\top} (D + Y^\top H_0 Y) R^{-1} & -R^{-\top} \\ -R^{-1} & 0 \end{pmatrix}
               \begin{pmatrix} S^\top g \\ Y^\top H_0 g \end{pmatrix}

    with R the upper triangle of S'Y and D its diagonal: the two-loop recursion in a few products for all steps at once (Byrd,
    Nocedal and Schnabel, 1994, equation 3.1). H_0 is diagonal: one over the curvature, scaled by the last step. A step with
    s'y not above 0 is stored as zeros, and so forgotten.
    """

    def __init__(self, w: Tensor, curvature: Tensor, memory: int) -> None:
        problems, width, classes = w.shape
        self.inverse = (1 / curvature).expand(width, classes).reshape(-1)
        self.s = w.new_zeros(problems, memory, width * classes)
        self.y = torch.zeros_like(self.s)
        self.sy = w.new_zeros(problems, memory, memory, dtype=torch.float64)
        self.yy = torch.zeros_like(self.sy)  # Y' Y over the curvature
        self.scale = w.new_ones(problems, dtype=torch.float64)
        self.order: list[int] = []  # slots, the oldest step first

    def add(self, moved: Tensor, turned: Tensor) -> None:
        s, y = moved.flatten(1), turned.flatten(1)
        product = (s * y).sum(1, keepdim=True)
        usable = product > 1e-12 * (y * y).sum(1, keepdim=True)
        s, y = torch.where(usable, s, 0.0), torch.where(usable, y, 0.0)
        slot = len(self.order) if len(self.order) < self.s.shape[1] else self.order.pop(0)
        self.order.append(slot)
        self.s[:, slot], self.y[:, slot] = s, y
        self.sy[:, :, slot] = _products(self.s, y)
        self.sy[:, slot] = _products(self.y, s)
        self.yy[:, slot] = self.yy[:, :, slot] = _products(self.y, y * self.inverse)
        inner = self.yy[:, slot, slot]
        last = self.sy[:, slot, slot] / inner.clamp(min=1e-300)
        self.scale = torch.where(inner > 0, last, 1.0)

    def apply(self, gradient: Tensor) -> Tensor:
        g = gradient.flatten(1)
        scaled = g * self.inverse
        if not self.order:
            return scaled.view_as(gradient)
        order = torch.tensor(self.order)
        pick = order[:, None], order[None]
        r = self.sy[:, *pick].triu()
        diagonal = r.diagonal(dim1=1, dim2=2)
        inner = self.scale[:, None, None] * self.yy[:, *pick] + torch.diag_embed(diagonal)
        r = r + torch.diag_embed((diagonal == 0).double())
        along = _products(self.s, g)[:, order, None]
        across = self.scale[:, None, None] * _products(self.y, scaled)[:, order, None]
        u = torch.linalg.solve_triangular(r, along, upper=True)
        v = torch.linalg.solve_triangular(r.transpose(1, 2), inner @ u - across, upper=False)
        by_slot = torch.zeros(2, len(g), 1, self.s.shape[1], dtype=self.sy.dtype)
        by_slot[:, :, 0, order] = torch.stack([v, u])[..., 0]
        v, u = by_slot.to(g.dtype)
        out = torch.baddbmm((v @ self.s), u * -self.scale.to(g.dtype)[:, None, None], self.y * self.inverse)
        return (out[:, 0] + self.scale.to(g.dtype)[:, None] * scaled).view_as(gradient)

    def only(self, which: Tensor) -> None:
        self.s, self.y, self.sy, self.yy, self.scale = (
            t[which] for t in (self.s, self.y, self.sy, self.yy, self.scale)
        )  # fmt: skip


def _products(rows: Tensor, vector: Tensor) -> Tensor:
    """Inner products (P, m), in double precision, of m rows (P, m, K) and a vector (P, K) each."""
    return torch.bmm(rows, vector[:, :, None])[:, :, 0].double()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum((1, 2), dtype=torch.float64)
