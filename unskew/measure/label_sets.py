r"""Label sets: the quality of a model on rows with several labels: over all labels, per label, and per label and bias value.

.. math::
    F_1^l = \frac{2\, tp_l}{2\, tp_l + fp_l + fn_l}, \qquad
    AP^l = \sum_k (R_k - R_{k-1})\, P_k, \qquad
    F_1 = \frac1L \sum_l F_1^l, \qquad mAP = \frac1L \sum_l AP^l

A label is predicted if its logit is above 0. P and R are precision and recall of the rows above the k-th distinct score. Labels
that no row has are left out. Intervals are the 2.5 % and 97.5 % quantiles over bootstrap draws of rows; a label absent from a
draw is left out of that draw. Above 100,000 rows the bootstrap is one by counts (`unskew.stats.resample`), in one pass over the rows: F1
of a draw is exact, AP that of scores rounded to 256 cells, and its interval is moved by what the rounding changes in all rows.

Source: Wang et al., "Balanced datasets are not enough", ICCV 2019, section 4 (macro F1 and mAP); Efron, "Bootstrap methods",
1979.
Differs: nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import Rows, passes
from unskew.core.rng import stream
from unskew.stats.ranked import Edges, edges_of, f1_and_precision
from unskew.stats.resample import COUNTED, counts

DRAWS = 400
HELD = 2**25  # counts, or scores, of rows held at once


@dataclass(frozen=True, slots=True)
class LabelSets:
    f1: float
    f1_interval: tuple[float, float]
    average_precision: float
    average_precision_interval: tuple[float, float]
    per_label: tuple[dict[str, float], ...]  # n, f1, average_precision; NaN for labels that no row has
    judged: int  # number of labels that some row has


def label_sets(logits: Rows, y: Tensor, *, seed: int = 0, draws: int = DRAWS) -> LabelSets:
    """Macro F1 and mean average precision of logits (N, L), in memory or in a file, against zeros and ones (N, L).

    >>> result = label_sets(torch.tensor([[2.0], [-1.0], [1.0], [-2.0]]), torch.tensor([[1.0], [0.0], [0.0], [0.0]]))
    >>> round(result.f1, 4), result.average_precision  # one of two predictions is correct, and it ranks first
    (0.6667, 1.0)
    """
    if logits.shape != y.shape or y.ndim != 2:
        raise UserError(
            f"label sets need logits and labels of the same shape (N, L), got {tuple(logits.shape)}, {tuple(y.shape)}"
        )
    positives = (y > 0).sum(0)
    seen = (positives > 0).nonzero().flatten()
    nothing = {"n": 0.0, "f1": math.nan, "average_precision": math.nan}
    if not len(seen):
        empty = (math.nan, math.nan)
        return LabelSets(math.nan, empty, math.nan, empty, tuple(dict(nothing) for _ in range(y.shape[1])), 0)
    f1, ap, summary = (_of_many if len(y) > COUNTED else _of_few)(logits, y, seen, draws, seed)
    per_label = [dict(nothing) for _ in range(y.shape[1])]
    for place, k in enumerate(seen.tolist()):
        per_label[k] = {"n": float(positives[k]), "f1": float(f1[place]), "average_precision": float(ap[place])}
    (f1_value, f1_interval), (ap_value, ap_interval) = summary
    return LabelSets(f1_value, f1_interval, ap_value, ap_interval, tuple(per_label), len(seen))


Interval = tuple[float, float]
Figures = tuple[
    Tensor, Tensor, tuple[tuple[float, Interval], tuple[float, Interval]]
]  # F1 and AP by label; their means, with intervals


def _of_few(logits: Rows, y: Tensor, seen: Tensor, draws: int, seed: int) -> Figures:
    y, logits = y.double(), logits[:]
    blocks = []
    for often in _counts(len(y), draws, seed):
        held = often @ y[:, seen] > 0  # (b, judged)
        f1 = weighted_f1((logits[:, seen] > 0).double(), y[:, seen], often)
        ap = torch.stack([weighted_average_precision(logits[:, k].double(), y[:, k], often) for k in seen.tolist()], 1)
        blocks.append((held, f1, ap))
    held, f1, ap = (torch.cat(parts) for parts in zip(*blocks, strict=True))  # (draws + 1, judged)
    return f1[0], ap[0], (_summary(f1, held), _summary(ap, held))


def _of_many(logits: Rows, y: Tensor, seen: Tensor, draws: int, seed: int) -> Figures:
    """The labels' own figures from all their scores, a few labels at a time; those of the draws from counts by cell, in one pass."""
    n, exact, edges = len(y), [], list[Edges]()
    for some in torch.split(seen, max(1, HELD // n)):
        scores = torch.cat([logits[part][:, some] for part in passes(n, logits.shape[1])])
        for score, k in zip(scores.unbind(1), some.tolist(), strict=True):
            exact.append(
                float(weighted_average_precision(score.double(), y[:, k].double(), torch.ones(1, n, dtype=torch.float64)))
            )
            edges.append(edges_of(score, y[:, k]))
        del scores
    # Cell, label and draw; the first draw is the rows themselves. Small whole numbers, so single precision is exact.
    tables = [torch.zeros(2 * (len(e.at) + 1), draws + 1) for e in edges]
    for part, often in counts(draws, n, seed):
        drawn = torch.cat([torch.ones(1, often.shape[1]), often]).T.contiguous()
        score, true = logits[part][:, seen], (y[part][:, seen] > 0).long()
        for k, (edge, table) in enumerate(zip(edges, tables, strict=True)):
            table.index_add_(0, 2 * edge.cell(score[:, k]) + true[:, k], drawn)
    by_label = [f1_and_precision(t.view(-1, 2, draws + 1).permute(2, 0, 1), e.zero) for t, e in zip(tables, edges, strict=True)]
    held = torch.stack([t.view(-1, 2, draws + 1)[:, 1].sum(0) > 0 for t in tables], 1)
    f1, rounded = (torch.stack(columns, 1) for columns in zip(*by_label, strict=True))
    ap = torch.tensor(exact, dtype=torch.float64)
    value, (low, high) = _summary(rounded, held)
    moved = float(ap.mean()) - value
    return f1[0], ap, (_summary(f1, held), (float(ap.mean()), (low + moved, high + moved)))


def _counts(n: int, draws: int, seed: int) -> Iterator[Tensor]:
    """(b, n) how often each row counts: once, as the rows themselves, then in every bootstrap draw. As many at once as HELD allows."""
    generator = stream(seed, "bootstrap")
    for numbers in torch.split(torch.arange(draws + 1), max(1, HELD // max(1, n))):
        counts = torch.zeros(len(numbers), n, dtype=torch.float64)
        for row, number in enumerate(numbers.tolist()):
            if number == 0:
                counts[row] = 1
            else:
                counts[row] = torch.randint(0, n, (n,), generator=generator).bincount(minlength=n)
        yield counts


def weighted_f1(guess: Tensor, y: Tensor, counts: Tensor) -> Tensor:
    """(B, L): F1 of every label when row i counts `counts[b, i]` times."""
    hit, said, true = counts @ (guess * y), counts @ guess, counts @ y
    return 2 * hit / (said + true).clamp(min=1e-12)


def weighted_average_precision(score: Tensor, y: Tensor, counts: Tensor) -> Tensor:
    """(B,): average precision of one label when row i counts `counts[b, i]` times; rows of equal score count together."""
    order = score.argsort(descending=True, stable=True)
    score, y, counts = score[order], y[order], counts[:, order]
    last = torch.cat([(score[1:] != score[:-1]).nonzero().flatten(), torch.tensor([len(score) - 1])])  # of each score
    hits = (counts * y).cumsum(1)[:, last]
    precision = hits / counts.cumsum(1)[:, last].clamp(min=1e-12)
    gained = torch.diff(hits, dim=1, prepend=torch.zeros(len(hits), 1, dtype=hits.dtype))
    return (gained * precision).sum(1) / hits[:, -1].clamp(min=1e-12)


def by_bias(logits: Tensor, y: Tensor, bias: Tensor, num_values: int) -> list[list[dict[str, float]]]:
    """For every label and bias value: rows, rows with the label, recall, false-alarm rate, F1; NaN where undefined."""
    rows = torch.zeros(num_values, dtype=torch.float64)
    hit, said, true = torch.zeros(3, num_values, y.shape[1], dtype=torch.float64)  # each (V, L)
    for part in passes(*y.shape):
        guess, has = (logits[part] > 0).double(), y[part].double()
        mask = torch.stack([(bias[part] == v).double() for v in range(num_values)])  # (V, m); -1 is in none
        rows += mask.sum(1)
        for into, these in ((hit, guess * has), (said, guess), (true, has)):
            into += mask @ these
    undefined = torch.tensor(math.nan, dtype=torch.float64)

    def share(part: Tensor, whole: Tensor) -> Tensor:
        return torch.where(whole > 0, part / whole.clamp(min=1), undefined)

    tables = {
        "rows": rows[:, None].expand_as(true),
        "n": true,
        "recall": share(hit, true),
        "false_alarms": share(said - hit, rows[:, None] - true),
        "f1": torch.where(true > 0, share(2 * hit, said + true), undefined),  # undefined without positives, as over all rows
    }
    return [[{k: float(t[v, label]) for k, t in tables.items()} for v in range(num_values)] for label in range(y.shape[1])]


def _summary(table: Tensor, held: Tensor) -> tuple[float, tuple[float, float]]:
    """Mean over labels in the data (first row of the table), and its interval over the bootstrap draws (the other rows)."""
    means = torch.where(held, table, 0.0).sum(1) / held.sum(1).clamp(min=1)
    if len(means) == 1:
        return float(means[0]), (math.nan, math.nan)
    low, high = means[1:].quantile(torch.tensor([0.025, 0.975], dtype=means.dtype)).tolist()
    return float(means[0]), (low, high)


def other_labels(y: Tensor, attribute: Tensor) -> Tensor | None:
    """The labels (N, L) that are not a value of the bias itself, on every row where it is known; None if all are.

    >>> other_labels(torch.tensor([[1, 0], [0, 0], [1, 1]]), torch.tensor([1, 0, 1])).tolist()
    [1]
    """
    if y.ndim == 1:
        return None
    known = attribute >= 0
    values = sorted(set(attribute[known].tolist()))
    own = torch.tensor(
        [any(bool((y[known, k].bool() == (attribute[known] == v)).all()) for v in values) for k in range(y.shape[1])]
    )
    if not bool(own.any()):
        return None
    if bool(own.all()):
        raise UserError("every label is a value of the bias itself, so there is nothing else to attack")
    return (~own).nonzero().flatten()


FUNCTIONS = (label_sets,)
RANGE = (0.0, 1.0)
HIGHER = "the labels are predicted better"
