r"""Group accuracy: a model's accuracy for every (class, bias) pair, and the averages people quote.

.. math::
    \hat a_{yb} = \frac{c_{yb}}{n_{yb}}, \quad
    \text{plain} = \frac{\sum c_{yb}}{\sum n_{yb}}, \quad
    \text{class-balanced} = \frac1C \sum_y \frac{\sum_b c_{yb}}{\sum_b n_{yb}}, \quad
    \text{group-mean} = \frac1G \sum_{yb} \hat a_{yb}, \quad
    \text{worst-group} = \min_{yb:\, n_{yb} \ge 30} \hat a_{yb}

The unbiased accuracy is the mean over groups of more than 10 rows. If there are conflicting groups but all of them are too small,
it and the worst group are undefined: they would be the accuracy of aligned groups under another name. A group is aligned if the
bias points to its class: by construction of the data set, else if class and bias value occur together in training more often than
if they were independent and the value is the common case of its class (`unskew.stats.alignment`); a group that is over-represented
but rare, and every group of a class without an aligned one, is neither aligned nor conflicting. Undefined figures
are NaN with a reason. Proportions have Wilson's 95 % interval, means of proportions a normal one.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4
(unbiased accuracy); Sagawa et al., ICLR 2020 (worst group); Wilson, JASA 1927 (interval).
Differs: groups of fewer than 30 rows cannot be the worst group, because their lowest is mostly chance; they are shown and marked.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import passes
from unskew.records import SMALL_GROUP, Cell, Estimate, Groups
from unskew.stats.groups import group_id, tensor_of
from unskew.stats.intervals import mean_of_proportions, wilson

UNBIASED_MIN = 10  # ReBias keeps cells with more rows than this


def groups(
    logits_or_predictions: Tensor,
    y: Tensor,
    bias: Tensor | None = None,
    *,
    aligned: Sequence[Tensor] | None = None,
    neither: Sequence[Tensor] | None = None,
    classes: Sequence[str] | None = None,
    bias_names: Sequence[str] | None = None,
    bias_values: Sequence[Sequence[str]] | None = None,
) -> Groups:
    """Accuracy by group, with every named average.

    `bias` is (N,) or (N, A) codes, -1 where missing. `aligned` has a (classes, values) boolean matrix per bias column;
    `neither` too, of the pairs that are not conflicting either.

    >>> g = groups(torch.tensor([0, 0, 1, 0]), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 0]))
    >>> g.plain.value, g.group_mean.value, round(g.class_balanced.value, 2)
    (0.75, 0.6666666666666666, 0.75)
    """
    logits_or_predictions, y = tensor_of(logits_or_predictions, "predictions"), tensor_of(y, "labels")
    bias = None if bias is None else tensor_of(bias, "bias values")
    if len(logits_or_predictions) != len(y) or (bias is not None and len(bias) != len(y)):
        rows = "" if bias is None else f" and {len(bias)} bias values"
        raise UserError(f"got {len(logits_or_predictions)} predictions, {len(y)} labels{rows}")
    right = _right(logits_or_predictions, y)
    label = y if y.ndim == 1 else torch.zeros(len(y), dtype=torch.long)
    codes = torch.zeros(len(y), 0, dtype=torch.long) if bias is None else (bias[:, None] if bias.ndim == 1 else bias).long()
    if classes is None:
        classes = [str(c) for c in range(int(label.max()) + 1 if len(label) else 0)]
    if y.ndim > 1:
        classes = ["all labels"]
    if bias_values is None:
        bias_values = [[str(v) for v in range(int(c.max()) + 1 if len(c) else 0)] for c in codes.unbind(1)]
    names = tuple(bias_names) if bias_names is not None else tuple(f"bias{k}" for k in range(codes.shape[1]))
    known = (codes >= 0).all(1)
    cells = _cells(right[known], label[known], codes[known], [len(classes), *map(len, bias_values)], aligned, neither)
    return Groups(
        cells=cells,
        classes=tuple(classes),
        bias_names=names,
        bias_values=tuple(tuple(v) for v in bias_values),
        plain=_pooled([(float(right.sum()), len(right))], "no rows"),
        class_balanced=_class_balanced(right, label, classes),
        group_mean=_mean([(c.correct, c.n) for c in cells], "no group has rows"),
        worst_group=_worst(cells),
        aligned=_pooled([(c.correct, c.n) for c in cells if c.aligned], _why(names, aligned, "aligned")),
        conflicting=_pooled([(c.correct, c.n) for c in cells if c.aligned is False], _why(names, aligned, "conflicting")),
        unbiased=_unbiased(cells),
        without_bias=int((~known).sum()),
    )


def _right(scores: Tensor, y: Tensor) -> Tensor:
    """1.0 for a correct row; the share of correct labels for a multi-label row."""
    if y.ndim == 2:
        parts = [((scores[part] > 0) == (y[part] > 0)).double().mean(1) for part in passes(*y.shape)]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)
    predictions = scores.argmax(1) if scores.ndim == 2 else scores
    return (predictions == y).double()


def _cells(
    right: Tensor,
    label: Tensor,
    codes: Tensor,
    sizes: Sequence[int],
    aligned: Sequence[Tensor] | None,
    neither: Sequence[Tensor] | None,
) -> tuple[Cell, ...]:
    if not len(label):
        return ()
    code = group_id([label, *codes.unbind(1)], sizes)
    occurring, inverse = torch.unique(code, return_inverse=True)  # never the full product: intersections are sparse
    n = torch.zeros(len(occurring), dtype=torch.long).index_add_(0, inverse, torch.ones_like(inverse))
    correct = torch.zeros(len(occurring), dtype=torch.float64).index_add_(0, inverse, right)
    cells = []
    for value, rows, hits in zip(occurring.tolist(), n.tolist(), correct.tolist(), strict=True):
        parts = []
        for size in reversed(sizes):
            value, part = divmod(value, size)
            parts.append(part)
        first, *rest = reversed(parts)
        points_here = None if not rest or aligned is None else _points_here(first, rest, aligned, neither)
        low, high = wilson(hits, rows)
        cells.append(Cell(first, tuple(rest), rows, hits, low, high, points_here))
    return tuple(cells)


def _points_here(y: int, bias: Sequence[int], aligned: Sequence[Tensor], neither: Sequence[Tensor] | None) -> bool | None:
    """Aligned if every column is; conflicting if any column is; else None."""
    agrees = [bool(a[y, b]) for a, b in zip(aligned, bias, strict=True)]
    neutral = [False] * len(agrees) if neither is None else [bool(m[y, b]) for m, b in zip(neither, bias, strict=True)]
    if all(agrees):
        return True
    return False if any(not a and not m for a, m in zip(agrees, neutral, strict=True)) else None


def _pooled(parts: list[tuple[float, int]], reason: str) -> Estimate:
    n = sum(m for _, m in parts)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, reason)
    correct = sum(c for c, _ in parts)
    return Estimate(correct / n, *wilson(correct, n), n)


def _mean(parts: list[tuple[float, int]], reason: str) -> Estimate:
    parts = [(c, n) for c, n in parts if n]
    if not parts:
        return Estimate(math.nan, math.nan, math.nan, 0, reason)
    value, low, high = mean_of_proportions([c for c, _ in parts], [n for _, n in parts])
    return Estimate(value, low, high, sum(n for _, n in parts))


def _class_balanced(right: Tensor, label: Tensor, classes: Sequence[str]) -> Estimate:
    parts = [(float(right[label == c].sum()), int((label == c).sum())) for c in range(len(classes))]
    empty = [classes[c] for c, (_, n) in enumerate(parts) if n == 0]
    if empty:
        return Estimate(math.nan, math.nan, math.nan, 0, f"no rows of class {empty[0]}")
    return _mean(parts, "no rows")


def _unbiased(cells: Sequence[Cell]) -> Estimate:
    large = [c for c in cells if c.n > UNBIASED_MIN]
    if large and (one_sided := _only_aligned(cells, large)):
        return Estimate(math.nan, math.nan, math.nan, 0, f"{one_sided} more than {UNBIASED_MIN} rows")
    return _mean([(c.correct, c.n) for c in large], f"no group has more than {UNBIASED_MIN} rows")


def _only_aligned(cells: Sequence[Cell], judged: Sequence[Cell]) -> str:
    """The reason, if there are conflicting cells but none among those judged; else empty."""
    one_sided = any(c.aligned is False for c in cells) and not any(c.aligned is False for c in judged)
    return "no conflicting group has" if one_sided else ""


def _worst(cells: Sequence[Cell]) -> Estimate:
    judged = [c for c in cells if not c.small]
    if not judged:
        return Estimate(math.nan, math.nan, math.nan, 0, f"no group has {SMALL_GROUP} rows")
    if one_sided := _only_aligned(cells, judged):
        return Estimate(math.nan, math.nan, math.nan, 0, f"{one_sided} {SMALL_GROUP} rows")
    worst = min(judged, key=lambda c: c.accuracy)
    return Estimate(worst.accuracy, worst.low, worst.high, worst.n)


def _why(names: Sequence[str], aligned: Sequence[Tensor] | None, kind: str) -> str:
    if not names:
        return "no bias column"
    return f"no {kind} rows" if aligned is not None else "unknown which groups are aligned"


FUNCTIONS = (groups,)
RANGE = (0.0, 1.0)
HIGHER = "more rows are correct"
