r"""Rows for attackers: balanced draws, and splits that do not make training and test rows contradict each other.

Draws without replacement from a set that was balanced by hand are anti-correlated: what training rows have too much of, test rows
have too little of, and an attacker scores below chance. Such a set is recognised by

.. math::  X^2 = \sum_l \sum_v \frac{n_v (p_{vl} - p_l)^2}{p_l (1 - p_l)} \; w_l

lying under the 1 % quantile of chi-squared: closer to balance than chance would make it (w_l = 1 - p_l and one degree of freedom
less if every row has one label, else 1). Then rows are put in blocks, one row of each value with the same labels where there are
any, and whole blocks are dealt by a walk that keeps what is left of the imbalance of every part near 0. Test rows are drawn from
the test part with replacement, as a fresh sample would be.

Source: Alweiss, Liu, Sawhney, "Discrepancy minimization via a self-balancing walk", STOC 2021 (the idea of the walk).
Differs: signs are chosen greedily, two blocks at a time.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.stats.lookup import patterns

SMALLEST = 20  # rows of the rarest value that a balanced draw needs
RARE = 0.01  # quantile of chi-squared under which balance is no accident
PARTS = ("train", "val", "test")


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rows of every round."""

    rows: list[dict[str, Tensor]]  # train, val and test
    n: int  # rows in one balanced draw
    judges: int  # different rows that judge over all rounds
    by_design: bool = False  # balanced by hand, so every part is balanced
    unmatched: float = 0.0  # share of the blocks whose rows differ in their labels


def values_of(attribute: Tensor, n: int, parts: Tensor | None = None) -> Tensor:
    """The values that occur; raises if there are fewer than two, or too few rows of one to balance."""
    if len(attribute) != n:
        raise UserError(f"{n} rows but {len(attribute)} bias values")
    known = attribute[attribute >= 0]
    counts = known.bincount() if len(known) else torch.zeros(0, dtype=torch.long)
    values = (counts > 0).nonzero().flatten()
    if len(values) < 2:
        raise UserError(f"leakage needs at least two values of the bias column, got {len(values)} in {n} rows")
    for k in range(len(PARTS)) if parts is not None else [-1]:
        where = "" if k < 0 else f" of the {PARTS[k]} split"
        inside = attribute if parts is None else attribute[parts == k]
        counts = inside[inside >= 0].bincount(minlength=int(values.max()) + 1)[values]
        if int(counts.min()) < SMALLEST:
            rare = int(values[counts.argmin()])
            raise UserError(
                f"bias value {rare} has {int(counts.min())} rows{where}, too few to balance; leakage needs at least {SMALLEST}"
            )
    return values


def is_balanced_by_design(x: Tensor, code: Tensor) -> bool:
    """Whether labels (N, L) of zeros and ones are closer to balance over the values than chance would make them.

    >>> x = torch.eye(2).repeat(50, 1)
    >>> is_balanced_by_design(x, torch.tensor([0, 0, 1, 1] * 25)), is_balanced_by_design(x, torch.tensor([0, 0, 1, 0] * 25))
    (True, False)
    """
    x, code = x[code >= 0].double(), code[code >= 0]
    single = bool((x.sum(1) == 1).all())
    p = x.mean(0)
    x, p = x[:, (p > 0) & (p < 1)], p[(p > 0) & (p < 1)]
    num_values = int(code.max()) + 1
    total = torch.zeros(num_values, x.shape[1], dtype=torch.float64).index_add(0, code, x)
    n = code.bincount(minlength=num_values).double()[:, None]
    score = (n * (total / n - p).square() / (p * (1 - p)) * ((1 - p) if single else 1.0)).sum()
    freedom = torch.tensor(float((num_values - 1) * (x.shape[1] - int(single))))
    return bool(freedom > 0) and float(torch.special.gammainc(freedom.double() / 2, score / 2)) < RARE


def draw_rounds(
    code: Tensor, rounds: int, seed: int, *, labels: Tensor | None = None, parts: Tensor | None = None
) -> Rounds:  # fmt: skip
    """Balanced rows for every round: half to train on, a quarter for validation, a quarter for the test; or within `parts`.

    `labels` are looked at to recognise a set that was balanced by hand; without them, rows are dealt at random.
    """
    num_values = int(code.max()) + 1
    if parts is not None:
        inside = [torch.where(parts == k, code, -1) for k in range(len(PARTS))]
        rows = [
            {
                name: _block(c, num_values, stream(seed, "leakage", k, name)).flatten()
                for name, c in zip(PARTS, inside, strict=True)
            }
            for k in range(rounds)
        ]
        return Rounds(rows, sum(map(len, rows[0].values())), len(rows[0]["test"]))
    by_design = labels is not None and is_balanced_by_design(labels, code)
    drawn, unmatched = [], 0.0
    for k in range(rounds):
        generator = stream(seed, "leakage", k)
        if labels is not None and by_design:
            split, share = _matched(code, num_values, labels, generator)
            drawn.append(split)
            unmatched += share / rounds
            continue
        block = _block(code, num_values, generator)
        ends = len(block) // 2, len(block) // 2 + len(block) // 4
        drawn.append(
            {"train": block[: ends[0]].flatten(), "val": block[ends[0] : ends[1]].flatten(), "test": block[ends[1] :].flatten()}
        )
    n = int(code[code >= 0].bincount().min()) * num_values
    return Rounds(drawn, n, n, by_design, unmatched)


def _block(code: Tensor, num_values: int, generator: torch.Generator) -> Tensor:
    """(rows, values) as many random rows of each value as the rarest has: any range of its rows is balanced."""
    picked = []
    smallest = int(code[code >= 0].bincount(minlength=num_values).min())
    for v in range(num_values):
        rows = (code == v).nonzero().flatten()
        picked.append(rows[torch.randperm(len(rows), generator=generator)[:smallest]])
    return torch.stack(picked, 1)


def _matched(code: Tensor, num_values: int, labels: Tensor, generator: torch.Generator) -> tuple[dict[str, Tensor], float]:
    """Balanced parts of blocks with equal labels where possible, test rows drawn with replacement; share of other blocks."""
    blocks = matched_blocks(code, num_values, labels, generator)
    x = labels[blocks].double()  # (B, V, L)
    excess = (x - x.mean(1, keepdim=True)).flatten(1)
    train, rest = halves(excess, generator)
    val, test = (rest[half] for half in halves(excess[rest], generator))
    pool = blocks[test].flatten()
    drawn = pool[torch.randint(0, len(pool), (len(pool),), generator=generator)]
    parts = {"train": blocks[train].flatten(), "val": blocks[val].flatten(), "test": drawn}
    return parts, float(excess.any(1).double().mean())


def matched_blocks(code: Tensor, num_values: int, labels: Tensor, generator: torch.Generator) -> Tensor:
    """(B, V) one row of each value, with the labels of the rarest value's row as long as there are any.

    >>> x = torch.tensor([[1.0], [0.0], [0.0], [1.0]])
    >>> matched_blocks(torch.tensor([0, 0, 1, 1]), 2, x, torch.Generator()).sort(0).values.tolist()
    [[0, 2], [1, 3]]
    """
    pattern = patterns(labels)
    rarest = int(code[code >= 0].bincount().argmin())
    order = torch.randperm(len(code), generator=generator)
    mine = order[code[order] == rarest]
    columns = []
    for v in range(num_values):
        rows = order[code[order] == v]
        place = {key: i for i, key in enumerate(_ranked(pattern[rows]))}
        at = torch.tensor([place.get(key, -1) for key in _ranked(pattern[mine])])
        free = torch.ones(len(rows), dtype=torch.bool)
        free[at[at >= 0]] = False
        at[at < 0] = free.nonzero().flatten()[: int((at < 0).sum())]
        columns.append(rows[at])
    return torch.stack(columns, 1)


def _ranked(pattern: Tensor) -> list[tuple[int, int]]:
    """Each row as (its pattern, how many rows before it have the same)."""
    seen: dict[int, int] = {}
    keys = []
    for p in pattern.tolist():
        keys.append((p, seen.get(p, 0)))
        seen[p] = seen.get(p, 0) + 1
    return keys


def halves(excess: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Deal rows to two halves so that the sums of `excess` (B, D) over each are nearly equal; an odd row goes to the second."""
    order = torch.randperm(len(excess), generator=generator)
    pairs = order[: len(order) // 2 * 2].view(-1, 2)
    step = excess[pairs[:, 0]] - excess[pairs[:, 1]]
    coin = torch.rand(len(pairs), generator=generator) < 0.5
    if bool(step.any()):
        walk = torch.zeros(excess.shape[1], dtype=excess.dtype)
        for k in range(len(pairs)):
            lean = float(walk @ step[k])
            if lean:
                coin[k] = lean < 0
            walk += step[k] if coin[k] else -step[k]
    first, second = torch.where(coin, pairs[:, 0], pairs[:, 1]), torch.where(coin, pairs[:, 1], pairs[:, 0])
    return first, torch.cat([second, order[len(pairs) * 2 :]])
