"""Weights under which the class and a biased model's opinion are independent, and how many rows they leave."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError

LEAST_EFFECTIVE = 30.0  # effective rows below which nothing can be learnt from weighted rows
SWEEPS = 200  # of raking


def effective_rows(weight: Tensor) -> float:
    r"""How many equally weighted rows carry as much information.

    .. math::  n_\text{eff} = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    >>> effective_rows(torch.tensor([1.0, 1.0, 0.0]))
    2.0
    """
    w = weight.double()
    return float(w.sum().square() / w.square().sum().clamp(min=1e-300))


def independence_weights(y: Tensor, opinion: Tensor, classes: int) -> Tensor:
    r"""A weight per row, mean 1, under which class and opinion are independent and the class shares are as before.

    .. math::  w_i = \frac{u_{y_i o_i}}{n_{y_i o_i}}, \qquad
               \sum_o u_{yo} = P(y), \quad \sum_y u_{yo} = P(o), \quad u_{yo} \propto P(y)\, P(o) \text{ before raking}

    A cell without rows stays empty; raking then restores both margins as far as the other cells allow. Several opinions (n, K) are
    raked in turn until the class is independent of each.

    >>> y, o = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 0])
    >>> independence_weights(y, o, 2).tolist()
    [0.75, 0.75, 1.5, 0.75, 0.75, 1.5]
    """
    cells = y[:, None] * classes + opinion.view(len(y), -1)  # (n, K)
    targets = [_independent_mass(column, classes) for column in cells.unbind(1)]
    weight = torch.ones(len(y), dtype=torch.float64)
    for _ in range(1 if len(targets) == 1 else SWEEPS):
        for column, target in zip(cells.unbind(1), targets, strict=True):
            sums = torch.zeros(classes * classes, dtype=torch.float64).index_add_(0, column, weight)
            weight = weight * (target / sums.clamp(min=1e-300))[column]
    return weight / weight.mean()


def _independent_mass(cell: Tensor, classes: int) -> Tensor:
    """(classes^2,) the rows that each cell of class and opinion would have if the two were independent; empty cells stay empty."""
    counts = cell.bincount(minlength=classes * classes).double().view(classes, classes)
    rows, columns = counts.sum(1) / len(cell), counts.sum(0) / len(cell)
    mass = torch.where(counts > 0, rows[:, None] * columns, 0.0)
    for _ in range(SWEEPS):
        mass = mass * (columns / mass.sum(0).clamp(min=1e-300))
        mass = mass * (rows / mass.sum(1).clamp(min=1e-300))[:, None]
    return mass.flatten() * len(cell)


def class_balanced_gain(new: Tensor, old: Tensor, y: Tensor, opinion: Tensor, classes: int) -> tuple[float, float]:
    r"""By how much one model's class-balanced accuracy exceeds another's where the opinion tells nothing, and its standard error.

    .. math::  G = \sum_i v_i\, \big([\hat y^\text{new}_i = y_i] - [\hat y^\text{old}_i = y_i]\big), \qquad
               v_i = \frac{w_i}{C \sum_{j: y_j = y_i} w_j}

    w makes class and opinion independent. With `old` all False, G is the accuracy itself.

    >>> y, o = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 0])
    >>> gain, error = class_balanced_gain(y == y, y == o, y, o, 2)  # one that is always right, and the shortcut itself
    >>> round(gain, 3), round(error, 3)
    (0.5, 0.217)
    """
    weight = independence_weights(y, opinion, classes)
    sums = torch.zeros(classes, dtype=torch.float64).index_add_(0, y, weight)
    there = int((sums > 0).sum())
    share = weight / sums[y] / there
    change = new.double() - old.double()
    by_class = torch.zeros(classes, dtype=torch.float64).index_add_(0, y, share * change) * there
    return float((share * change).sum()), float((share * (change - by_class[y])).square().sum().sqrt())


def raked_weights(y: Tensor, opinion: Tensor, sweeps: int = 50) -> Tensor:
    """One weight per row, mean 1, that makes every label (n, L) independent of its own opinion (n, L), by raking label by label.

    >>> y = torch.tensor([[0], [0], [0], [1], [1], [1]])
    >>> raked_weights(y, torch.tensor([[0], [0], [1], [1], [1], [0]])).flatten().tolist()
    [0.75, 0.75, 1.5, 0.75, 0.75, 1.5]
    """
    cells = 2 * y.long() + opinion.long()  # (n, L) codes 0 to 3
    weight = torch.ones(len(y), dtype=torch.float64)
    target = []
    for label in range(y.shape[1]):
        p, q = y[:, label].double().mean(), opinion[:, label].double().mean()
        target.append(torch.stack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q]) * len(y))
    for _ in range(sweeps):
        for label in range(y.shape[1]):
            sums = torch.zeros(4, dtype=torch.float64).index_add_(0, cells[:, label], weight)
            weight = weight * torch.where(sums > 0, target[label] / sums.clamp(min=1e-300), 0.0)[cells[:, label]]
    return weight / weight.mean()


def agreement(weight: Tensor, y: Tensor, opinion: Tensor, classes: int) -> tuple[float, float]:
    r"""The share of the weight where opinion and class agree, and what it would be if they were independent.

    .. math::  A = P_w(o = y), \qquad A_0 = \sum_c P_w(y = c)\, P_w(o = c)

    A above A_0: the opinion still tells the class; below: it tells it in reverse.
    """
    w = weight.double() / weight.double().sum().clamp(min=1e-300)
    by_class, by_opinion = (torch.zeros(classes, dtype=torch.float64).index_add_(0, code, w) for code in (y, opinion))
    return float(w[y == opinion].sum()), float((by_class * by_opinion).sum())


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Tempered weights and how far they came."""

    weight: Tensor  # (n,) mean 1
    power: float  # exponent on the given weights
    agreement: float  # share of the weight where opinion and class agree
    independent: float  # that share if they were independent
    effective: float  # rows
    stopped: str  # why the exponent is not larger: independence, effective rows, or the weights themselves

    def words(self) -> str:
        """In a sentence."""
        gap = 100 * (self.agreement - self.independent)
        reached = "class and opinion are independent" if abs(gap) < 2 else f"{gap:.0f} points above independence"
        return f"weights raised to the power {self.power:.2f}, stopped by {self.stopped}: {reached}, {self.effective:.0f} effective rows"


def calibrate(
    weight: Tensor, y: Tensor, opinion: Tensor, classes: int, *, least: float = LEAST_EFFECTIVE, steps: int = 40
) -> Calibrated:
    r"""Temper weights until class and opinion are independent under them, and no further.

    .. math::  w_i \propto c_{y_i}\, v_i^\tau, \qquad
               \tau = \max \{ t \in [0, 1] : A(t) \ge A_0(t),\ n_\text{eff}(t) \ge \text{least} \}

    v are the given weights; c keeps every class's share of the total. Tau = 0 is no weighting, 1 the weights as given.
    """
    if len(weight) != len(y) or not bool((weight >= 0).all()) or float(weight.sum()) <= 0:
        raise UserError(f"calibrate needs one weight per row, not negative and not all 0; got {len(weight)} for {len(y)} rows")
    tiny = float(weight[weight > 0].min())
    logs = weight.double().clamp(min=tiny).log()
    dropped = weight <= 0

    def tempered(power: float) -> Tensor:
        raw = (power * (logs - logs.max())).exp()
        raw = torch.where(dropped, raw * (1 - power), raw)  # a dropped row fades out as the power nears 1
        share = y.bincount(minlength=classes).double() / len(y)
        sums = torch.zeros(classes, dtype=torch.float64).index_add_(0, y, raw)
        return raw * (share / sums.clamp(min=1e-300))[y] * len(y)

    def allowed(power: float) -> str:
        w = tempered(power)
        got, free = agreement(w, y, opinion, classes)
        if got < free:
            return "independence"
        return "effective rows" if effective_rows(w) < min(least, effective_rows(tempered(0.0))) else ""

    low, high, stopped = 0.0, 1.0, allowed(1.0)
    if not stopped:
        low = 1.0
    else:
        for _ in range(steps):
            middle = (low + high) / 2
            why = allowed(middle)
            low, high, stopped = (middle, high, stopped) if not why else (low, middle, why)
    w = tempered(low)
    got, free = agreement(w, y, opinion, classes)
    return Calibrated(w, low, got, free, effective_rows(w), stopped or "the weights as given")
