r"""Spread a tag from a few dozen marked rows to all: cross-fitted linear readers of several representations, weighted by evidence.

.. math::
    p_i = \sum_m w_m\, \sigma(z_{mi}), \qquad w_m \propto \exp(-n \ell_m), \qquad
    \ell_m = -\sum_j \omega_j \log \sigma\big((2 t_j - 1)\, z_{mj}\big)

m runs over pairs of a representation and a weight decay; z are logits of readers that were not fitted on the row they judge; t is 1 for
rows marked yes and 0 for rows marked no; n counts the marks. The two sides have the same total weight. While few rows are marked no,
rows drawn at random stand in for them with the weight of PRESUMED answers; in further rounds each counts by the square of its
probability of no. Which row to ask about next: the least certain ones, far apart from one another.

Source: pseudo-BMA weights, Yao, Vehtari, Simpson and Gelman, "Using stacking to average Bayesian predictive distributions", 2018;
unlabelled rows in place of negatives, Elkan and Noto, "Learning classifiers from only positive and unlabeled data", 2008.
Differs: held-out folds in place of leave-one-out; rounds of cleaning in place of an estimate of the share of yes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.stats.readers import FOLDS, spread_folds, with_constant
from unskew.stats.softmax import fit_softmax, principal_axes

LEAST = 3  # rows that must be marked yes
STANDING = 200  # rows that stand in for answers no
PRESUMED = 4  # answers that they weigh as much as, all together; few, as most rows of a class may have the mark
FIRST = (1e-1,)  # weight decay of the first round, which sorts out what cannot tell
UNEVEN = 4.0  # factor by which rows marked no may weigh more or less for their class
DECAYS = (1.0, 1e-1, 1e-2)  # of the others
READ = 8  # representations that are read after the first round
ROUNDS = 6  # each sorts out some more rows that stand in for no and have the mark
NEGLIGIBLE = 1e-2  # of the best reader's weight: a representation below it is not read in the next round
MOST = 48  # principal axes of a representation


@dataclass(frozen=True, slots=True)
class Spread:
    """A tag on every row: the probability of yes, and what the readers read it from."""

    p: Tensor  # (n,) by readers that were not fitted on the row
    weight: dict[str, float]  # of each representation; they sum to 1
    agreement: float  # area under the curve of p on the rows marked by hand; NaN without both answers


def spread(blocks: Mapping[str, Tensor], mark: Tensor, y: Tensor | None = None, *, seed: int = 0) -> Spread:
    """Read the tag from `blocks` (features of the same rows by name, as of `principal`); `mark` is 1 (yes), 0 (no) or -1 (not marked).

    With classes `y`, rows marked no are weighted, and stand-ins drawn, to the classes of the rows marked yes: else the class would pass
    for the tag.

    >>> x = principal(torch.linspace(-1, 1, 200)[:, None])
    >>> mark = torch.full((200,), -1).index_fill(0, torch.arange(190, 200), 1).index_fill(0, torch.arange(5), 0)
    >>> bool(spread({"x": x}, mark).p[150:].min() > spread({"x": x}, mark).p[:50].max())
    True
    """
    yes, no = (mark == 1).nonzero().flatten(), (mark == 0).nonzero().flatten()
    if len(yes) < LEAST:
        raise UserError(f"only {len(yes)} rows are marked yes; mark at least {LEAST} before the tag is spread")
    if not blocks:
        raise UserError("the rows have no features to read the tag from")
    unknown = (mark < 0).nonzero().flatten()
    drawn = _stand_ins(unknown, yes, y, seed)
    if not len(no) and not len(drawn):
        raise UserError("every row is marked yes; a tag needs rows that lack it")
    readable, asked = dict(blocks), _matched(no, yes, y)
    lacks, found = torch.ones(len(drawn), dtype=torch.float64), Spread(torch.zeros(0), {}, math.nan)
    for turn in range(ROUNDS):
        found = _fit(readable, yes, no, drawn, lacks, asked, DECAYS if turn else FIRST, seed)
        lacks = (1 - found.p[drawn]).clamp(min=1e-3) ** 2
        best = sorted(found.weight.items(), key=lambda item: -item[1])[:READ]
        readable = {name: readable[name] for name, w in best if w >= NEGLIGIBLE * best[0][1]}
    marked = torch.cat([yes, no])
    weight = {name: found.weight.get(name, 0.0) for name in blocks}
    return Spread(found.p, weight, area(found.p[marked], mark[marked] == 1))


def principal(block: Tensor) -> Tensor:
    """Standardised features after a column of ones; more than MOST columns are turned to their principal axes: (n, at most 1 + MOST).

    >>> principal(torch.tensor([[1.0, 2.0], [3.0, 2.0]])).shape
    torch.Size([2, 3])
    """
    x = with_constant(block)
    if x.shape[1] <= MOST + 1:
        return x
    part = x[:: max(1, len(x) // 4000), 1:]
    _, axes = principal_axes(part - part.mean(0))
    turned = x[:, 1:] @ axes[:, -MOST:]
    return torch.cat([x[:, :1], turned / turned.std()], 1)


def _stand_ins(unknown: Tensor, yes: Tensor, y: Tensor | None, seed: int) -> Tensor:
    """Unmarked rows drawn at random, each class as often as among the rows marked yes."""
    order = unknown[torch.randperm(len(unknown), generator=stream(seed, "stand-ins"))]
    if y is None:
        return order[:STANDING].sort().values
    share = y[yes].bincount(minlength=int(y.max()) + 1) / len(yes)
    parts = [order[y[order] == c][: math.ceil(STANDING * float(s))] for c, s in enumerate(share.tolist()) if s]
    return torch.cat(parts).sort().values


def _fit(
    blocks: Mapping[str, Tensor],
    yes: Tensor,
    no: Tensor,
    standing: Tensor,
    lacks: Tensor,
    asked: Tensor,
    decays: Sequence[float],
    seed: int,
) -> Spread:
    used = torch.cat([yes, no, standing])
    t = torch.cat([torch.ones(len(yes)), torch.zeros(len(no) + len(standing))]).long()
    share = len(no) / (len(no) + PRESUMED) if len(standing) else 1.0
    presumed = 0.5 * (1 - share) * lacks / lacks.sum().clamp(min=1e-9)
    weight = torch.cat([_even(len(yes), 0.5), 0.5 * share * asked, presumed])
    fold = spread_folds(t, min(FOLDS, len(yes)), seed)
    evidence, said, names = [], [], []
    for name, block in blocks.items():
        z = _logits(block, used, t, weight, fold, decays)  # (decays, rows)
        loss = (weight * F.softplus(z[:, used].double() * (1 - 2 * t))).sum(1)
        evidence.append(-(len(yes) + len(no)) * loss)
        said.append(z.double().sigmoid())
        names += [name] * len(loss)
    w = torch.cat(evidence).softmax(0)
    by_name = {name: float(w[torch.tensor([n == name for n in names])].sum()) for name in blocks}
    return Spread((w[:, None] * torch.cat(said)).sum(0), by_name, math.nan)


def _matched(no: Tensor, yes: Tensor, y: Tensor | None) -> Tensor:
    """Weights of the rows marked no, of sum 1: as far as UNEVEN allows, each class weighs what it weighs among the rows marked yes."""
    if y is None or not len(no):
        return _even(len(no), 1.0)
    classes = int(y.max()) + 1
    wanted, there = (y[rows].bincount(minlength=classes).double() / len(rows) for rows in (yes, no))
    weight = (wanted / there.clamp(min=1e-9)).clamp(1 / UNEVEN, UNEVEN)[y[no]]
    return weight / weight.sum()


def _even(rows: int, total: float) -> Tensor:
    return torch.full((rows,), total / max(rows, 1), dtype=torch.float64)


def _logits(x: Tensor, used: Tensor, t: Tensor, weight: Tensor, fold: Tensor, decays: Sequence[float]) -> Tensor:
    """(decays, n) logits of yes: of a row that was fitted, by the reader that held it out; of others, the mean of all readers."""
    number = int(fold.max()) + 1
    outside = (fold[:, None] != torch.arange(number)).to(x.dtype) * weight[:, None].to(x.dtype)
    w = fit_softmax(x[used], t, outside / outside.sum(0).clamp(min=1e-30), decays, 2, tolerance=1e-3)
    direction = w[..., 1] - w[..., 0]  # (decays, folds, D)
    every = torch.einsum("rf,ekf->ekr", x, direction)
    z = every.mean(1)
    z[:, used] = every[:, fold, used]
    return z


def ask(p: Tensor, mark: Tensor, x: Tensor, count: int) -> Tensor:
    """Rows to ask about next: of the ten times as many least certain ones, those that lie far apart in the features `x`.

    >>> ask(torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.full((4,), -1), torch.tensor([[0.0], [1.0], [1.0], [5.0]]), 1).tolist()
    [1]
    """
    open_rows = (mark < 0).nonzero().flatten()
    doubt = (p[open_rows] - 0.5).abs()
    near = open_rows[doubt.argsort(stable=True)[: 10 * count]]
    chosen: list[int] = []
    distance = torch.full((len(near),), math.inf)
    for _ in range(min(count, len(near))):
        k = int(distance.argmax())  # the least certain one first
        chosen.append(int(near[k]))
        distance = torch.minimum(distance, (x[near] - x[near[k]]).norm(dim=1))
        distance[k] = -1.0
    return torch.tensor(chosen, dtype=torch.long)


def area(score: Tensor, yes: Tensor) -> float:
    """Area under the curve: the share of pairs in which the row that is yes scores higher; a tie counts half.

    >>> area(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True]))
    0.75
    """
    up, down = score[yes].double(), score[~yes].double()
    if not len(up) or not len(down):
        return math.nan
    rank = torch.searchsorted(down.sort().values, up) + torch.searchsorted(down.sort().values, up, right=True)
    return float(rank.double().mean()) / (2 * len(down))
