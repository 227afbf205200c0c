r"""balance: a subset in which every label has nearly equal numbers of all bias values.

.. math::  \frac1\alpha \le \frac{\#(v, l)}{\#(v', l)} \le \alpha \qquad \text{for every label } l \text{ and all bias values } v, v'

One class per row: the larger groups of every class are subsampled at random to alpha times the smallest. Several labels per row:
label by label, rows of the over-represented value are dropped, those with the fewest labels first, in rounds until nothing
changes. A row whose removal would leave a label without a value is kept. With several bias columns, their combinations are the
values; balanced combinations are balanced in each column too. Rows without a bias value are kept and not counted.

Source: Wang et al., "Balanced datasets are not enough", ICCV 2019, section 4 and Table 1 (alpha = 3, 2, 1).
Differs: equality is allowed (the paper's < would make alpha = 1 impossible). If alpha cannot be met, the result is the subset
with the smallest ratio found, and the ratio is reported, as the paper reports 1.08 for COCO; labels that lack a value from the
start are named and exempt. Rows with the same number of labels are dropped in random order (the paper does not specify it).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.repairs._contract import Outcome, Use, Work

SPLITS = ("train",)
ROUNDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    alpha: float = 1.0  # largest allowed ratio between the rows of two bias values

    def __post_init__(self) -> None:
        if self.alpha < 1:
            raise UserError(f"balance: alpha={self.alpha:g} must be at least 1")


@dataclass(frozen=True, slots=True)
class Balanced:
    index: Tensor  # positions of the rows kept
    reached: float  # the largest ratio of any label that has every value
    ratios: tuple[float, ...]  # per label: largest over smallest number of rows by value; inf if a value is missing
    one_sided: tuple[int, ...]  # labels that lacked a value from the start


def use(cfg: Config) -> Use:
    return "keep"


def apply(work: Work, cfg: Config) -> Outcome:
    data = work.data
    if not data.bias_names:
        raise UserError(f"balance needs a bias column, but {data.name} has none; name one with --bias")
    y, bias = data.y[work.rows], data.bias[work.rows]
    result = balance(y, bias, alpha=cfg.alpha, seed=work.seed)
    if len(result.one_sided) == int((torch.tensor(result.ratios) >= 1).sum()):
        raise UserError(
            f"balance: every label lacks a value of {' and '.join(data.bias_names)} in these {len(work.rows)} rows, so no ratio "
            "can be met; use inverse_frequency, or a bias column with fewer values"
        )
    notes = []
    if result.reached > cfg.alpha + 1e-9:
        notes.append(f"alpha={cfg.alpha:g} cannot be met: the ratio reached is {result.reached:.3g}")
    if result.one_sided:
        labels = ", ".join(data.classes[k] for k in result.one_sided[:5])
        more = f" and {len(result.one_sided) - 5} more" if len(result.one_sided) > 5 else ""
        notes.append(f"not balanced, because a bias value never occurs with it: {labels}{more}")
    weight = torch.zeros(len(work.rows))
    weight[result.index] = 1
    return Outcome(work.rows, weight, weight.clone(), figures={"alpha": cfg.alpha, "reached": result.reached, "notes": notes})


def balance(y: Tensor, bias: Tensor, *, alpha: float = 1.0, seed: int = 0) -> Balanced:
    """The rows to keep, for class codes (n,) or label sets (n, L) and bias codes (n,) or (n, A), -1 where missing.

    >>> y, gender = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([0, 0, 0, 1, 0, 1])
    >>> result = balance(y, gender)
    >>> len(result.index), result.reached
    (4, 1.0)
    """
    if not alpha >= 1:
        raise UserError(f"alpha={alpha:g}: must be at least 1")
    labels, value, single = _labels(torch.as_tensor(y)), _values(torch.as_tensor(bias)), torch.as_tensor(y).ndim == 1
    if len(labels) != len(value):
        raise UserError(f"{len(labels)} labels for {len(value)} bias values")
    sizes = int(value.max()) + 1 if len(value) else 0
    if sizes < 2:
        raise UserError(f"balance needs at least two bias values, got {sizes}")
    if single:
        return _one_class(labels, value, sizes, alpha, seed)
    known = (value >= 0).nonzero().flatten()
    mask = F.one_hot(value[known], sizes)  # (m, V)
    sets = labels[known].long()
    count = sets.T @ mask  # (L, V)
    bound = (count > 0).all(1)
    one_sided = ((count.sum(1) > 0) & ~bound).nonzero().flatten().tolist()
    # The order in which rows are dropped: fewest labels first, ties at random.
    chance = torch.randperm(len(known), generator=stream(seed, "balance"))
    order = chance[sets.sum(1)[chance].argsort(stable=True)]
    here = torch.ones(len(known), dtype=torch.bool)
    best, best_ratio = here.clone(), _worst(count, bound)
    for _ in range(ROUNDS):
        if best_ratio <= alpha + 1e-12:
            break
        if not _round(here, order, sets, value[known], count, bound, alpha):
            break
        ratio = _worst(count, bound)
        if ratio < best_ratio:
            best, best_ratio = here.clone(), ratio
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[known] = best
    final = sets[best].T @ mask[best]
    ratios = tuple(float(r) for r in final.amax(1).double() / final.amin(1))
    return Balanced(kept.nonzero().flatten(), best_ratio, ratios, tuple(one_sided))


def _one_class(y: Tensor, value: Tensor, sizes: int, alpha: float, seed: int) -> Balanced:
    """One class per row: of every group above its limit, the first rows in a random order are dropped. No row is looked at alone."""
    known = (value >= 0).nonzero().flatten()
    classes = int(y.max()) + 1
    cell = y[known] * sizes + value[known]
    count = cell.bincount(minlength=classes * sizes).view(classes, sizes)
    bound = (count > 0).all(1)
    least = torch.where(bound, count.amin(1), 0)
    limit = torch.where(bound, (alpha * least.double() + 1e-9).long(), len(y))[:, None].expand_as(count)
    excess = (count - limit).clamp(min=0).flatten()
    order = torch.randperm(len(known), generator=stream(seed, "balance"))
    order = order[cell[order].argsort(stable=True)]  # group after group, each in random order
    starts = count.flatten().cumsum(0) - count.flatten()
    rank = torch.arange(len(order)) - starts[cell[order]]
    kept = torch.ones(len(y), dtype=torch.bool)
    kept[known[order[rank < excess[cell[order]]]]] = False
    final = torch.minimum(count, limit)
    ratios = tuple(float(r) for r in final.amax(1).double() / final.amin(1))
    one_sided = ((count.sum(1) > 0) & ~bound).nonzero().flatten().tolist()
    return Balanced(kept.nonzero().flatten(), _worst(final, bound), ratios, tuple(one_sided))


def _round(here: Tensor, order: Tensor, sets: Tensor, value: Tensor, count: Tensor, bound: Tensor, alpha: float) -> bool:
    """Bring every label within alpha, one after another; True if a row was dropped."""
    changed = False
    for label in bound.nonzero().flatten().tolist():
        limit = int(alpha * int(count[label].min()) + 1e-9)
        for v in (count[label] > limit).nonzero().flatten().tolist():
            rows = order[(here & (sets[:, label] > 0) & (value == v))[order]]
            for row in rows.tolist():
                if int(count[label, v]) <= limit:
                    break
                carried = sets[row].bool() & bound
                if bool((count[carried, v] <= 1).any()):
                    continue  # the last row of its value for some label
                here[row] = False
                count[sets[row].bool(), v] -= 1
                changed = True
    return changed


def _worst(count: Tensor, bound: Tensor) -> float:
    if not bool(bound.any()):
        return 1.0
    rows = count[bound].double()
    return float((rows.amax(1) / rows.amin(1)).max())


def _labels(y: Tensor) -> Tensor:
    if not y.numel() or int(y.min()) < 0:
        raise UserError(f"balance needs labels as class codes from 0 on, or zeros and ones; got {len(y)} rows")
    return y if y.ndim == 2 else y.long()


def _values(bias: Tensor) -> Tensor:
    """One code per row: of a single column its values, of several their combinations; -1 if any is missing."""
    if bias.ndim == 1 or bias.shape[1] == 1:
        column = bias.reshape(len(bias))
        known = column >= 0
        code = torch.unique(column[known], return_inverse=True)[1] if bool(known.any()) else column[known]
    else:
        known = (bias >= 0).all(1)
        code = torch.unique(bias[known], dim=0, return_inverse=True)[1]
    value = torch.full((len(bias),), -1)
    value[known] = code
    return value
