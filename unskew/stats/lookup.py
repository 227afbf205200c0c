r"""The best attacker on a small table: it looks the bias value up by the label pattern. Its accuracy in closed form.

.. math::
    \mathrm{acc} = \frac{1}{V} \sum_v \sum_k \mathrm{E}\Big[ \frac{n_{kv} - T_{kv}}{n_v - h}\,
    [\, T_{kv} = \max_u T_{ku} \,] \,/\, \text{ties} \Big], \qquad T_{kv} \sim \text{hypergeometric}(n_v, n_{kv}, h)

===========  ==========================================================================
n_kv, n_v    rows of pattern k and value v; rows of value v
h            rows of every value that it is fitted on, half of the rarest value's
T_kv         how many of them have pattern k; it guesses the value with the most
===========  ==========================================================================

The expectation is over all ways to draw h rows of every value without replacement; the other rows judge.

Source: probability theory.
Differs: nothing.
"""

import numpy as np
import torch
from torch import Tensor

REACH = 12  # standard deviations around the mean of T that count; the rest is below 1e-30


def patterns(x: Tensor) -> Tensor:
    """(N,) which of the distinct rows of zeros and ones each row of x is.

    >>> patterns(torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])).tolist()
    [0, 1, 0]
    """
    bits = np.packbits(x.numpy().astype(bool), axis=1)
    words = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)  # much faster to sort than rows of numbers
    code = words[:, 0]
    for k in range(1, words.shape[1]):
        code = np.unique(code, return_inverse=True)[1].astype(np.uint64) * np.uint64(len(x)) + np.unique(
            words[:, k], return_inverse=True
        )[1].astype(np.uint64)
    return torch.from_numpy(np.unique(code, return_inverse=True)[1].astype(np.int64))


def table(pattern: Tensor, code: Tensor, num_patterns: int, num_values: int) -> Tensor:
    """(K, V) counts; rows of code -1 are left out.

    >>> table(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), 2, 2).tolist()
    [[0, 2], [1, 0]]
    """
    known = code >= 0
    flat = (pattern[known] * num_values + code[known]).bincount(minlength=num_patterns * num_values)
    return flat.view(num_patterns, num_values)


def held_out_recalls(counts: Tensor) -> Tensor:
    """(V,) expected share of each value's held-out rows that the look-up guesses, over all halves it may be fitted on.

    >>> held_out_recalls(torch.tensor([[2, 0], [0, 2]])).tolist()  # fitted on one row of each value: always right
    [1.0, 1.0]
    """
    n = counts.sum(0).tolist()
    h = min(n) // 2
    recalls = np.zeros(len(n))
    for row in counts.tolist():
        start, weight = _draws_of(row, n, h)
        t = start + np.arange(weight.shape[1])
        below = np.cumsum(weight, 1) - weight  # P(T_u < t)
        for v, total in enumerate(n):
            share = np.ones((1, len(t)))  # coefficients of z^ties in the product over the other values
            for u in range(len(n)):
                if u != v:
                    share = np.vstack([share * below[u], np.zeros(len(t))]) + np.vstack([np.zeros(len(t)), share * weight[u]])
            wins = (share / np.arange(1, len(share) + 1)[:, None]).sum(0)
            recalls[v] += float((weight[v] * wins * (row[v] - t) / (total - h)).sum())
    return torch.from_numpy(recalls)


def _draws_of(row: list[int], n: list[int], h: int) -> tuple[int, np.ndarray]:
    """The first T worth counting, and (V, ...) P(T_v = t) from there on."""
    mean = [h * r / total for r, total in zip(row, n, strict=True)]
    reach = [REACH * (m * (1 - r / t)) ** 0.5 + 5 for m, r, t in zip(mean, row, n, strict=True)]
    low = max(0, int(min(m - s for m, s in zip(mean, reach, strict=True))))
    high = min(max(row), int(max(m + s for m, s in zip(mean, reach, strict=True))))
    t = np.arange(low, high + 1)
    return low, np.stack([hypergeometric(t, total, r, h) for r, total in zip(row, n, strict=True)])


def hypergeometric(t: np.ndarray, total: int, marked: int, drawn: int) -> np.ndarray:
    """Chance that t of the `drawn` rows are among the `marked` of `total`; t must hold all values with a noticeable chance.

    >>> hypergeometric(np.arange(3), 4, 2, 2).round(12).tolist()  # 1, 4 and 1 of the 6 ways
    [0.166666666667, 0.666666666667, 0.166666666667]
    """
    possible = (t <= min(marked, drawn)) & (t >= marked + drawn - total)
    s = torch.from_numpy(np.where(possible, t, max(0, marked + drawn - total))).double()
    parts = torch.stack([s, marked - s, drawn - s, total - marked - drawn + s])
    log = -torch.lgamma(parts + 1).sum(0)
    weight: np.ndarray = np.where(possible, (log - log.max()).exp().numpy(), 0.0)
    weight /= weight.sum()
    return weight


def recalls(fitted: Tensor, judged: Tensor) -> Tensor:
    """(V,) share of each value's judged rows that the look-up guesses from the shares of the fitted rows; ties count in part.

    >>> recalls(torch.tensor([[3, 1], [1, 1]]), torch.tensor([[1, 1], [1, 3]])).tolist()
    [0.5, 0.75]
    """
    share = fitted.double() / fitted.sum(0).clamp(min=1)
    guess = (share >= share.amax(1, keepdim=True) - 1e-12).double()
    guess = guess / guess.sum(1, keepdim=True)
    return (judged.double() / judged.sum(0).clamp(min=1) * guess).sum(0)
