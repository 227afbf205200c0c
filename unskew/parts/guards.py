"""What a repair must not do: empty a class, leave too few rows, turn the shortcut round, or make it easier to read."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.records import Measured
from unskew.stats.independence import LEAST_EFFECTIVE, agreement, effective_rows

LEAST_SHARE = 0.5  # of a class's former part of the rows or of the weight
REVERSED = 0.1  # part of the weight by which the opinion may fall below independence
SAME = 0.8  # overlap of noisy and conflicting rows, in both directions, from which they are the same
RAISED = 0.02  # readable share that may be added
REMOVED = 0.25  # part of the former readable share below which the shortcut counts as removed
HARDLY = 0.8  # and above which it has hardly changed


@dataclass(frozen=True, slots=True)
class Harm:
    """One reason to refuse a repair."""

    kind: str  # class, rows, reversed, noise or raised
    line: str


def harms(
    data: DataSet,
    index: Tensor,
    weight: Tensor,
    opinion: Tensor | None,
    measured: Sequence[Measured],
    noisy: Tensor | None = None,
) -> list[Harm]:
    """Everything that is wrong with these weights, the worst first. `noisy` marks rows that were dropped for their labels."""
    found = []
    effective = effective_rows(weight)
    if effective < min(LEAST_EFFECTIVE, len(weight) / 2):  # half of a set that has hardly more to begin with
        found.append(
            Harm("rows", f"{effective:.0f} effective rows are left of {len(weight)}, at least {LEAST_EFFECTIVE:.0f} are needed")
        )
    if not data.multi_label:
        y = data.y[index]
        found += _lost_class(data, y, weight)
        if opinion is not None:
            found += _reversed(y, weight, opinion, len(data.classes))
            found += [] if noisy is None else _not_noise(y, opinion, noisy)
    found += [h for m in measured for h in _raised(m)]
    return found


def _lost_class(data: DataSet, y: Tensor, weight: Tensor) -> list[Harm]:
    """A class whose part of the weight fell to less than half of what it was."""
    before = y.bincount(minlength=len(data.classes)).double()
    after = torch.zeros(len(data.classes), dtype=torch.float64).index_add_(0, y, weight.double())
    share = torch.where(before > 0, (after / after.sum()) / (before / before.sum()).clamp(min=1e-12), 1.0)
    worst = int(share.argmin())
    if float(share[worst]) >= LEAST_SHARE:
        return []
    return [Harm("class", f"class {data.classes[worst]!r} keeps {100 * float(share[worst]):.0f} % of its part of the weight")]


def _reversed(y: Tensor, weight: Tensor, opinion: Tensor, classes: int) -> list[Harm]:
    got, free = agreement(weight, y, opinion, classes)
    before, free_before = agreement(torch.ones_like(weight), y, opinion, classes)
    if before <= free_before or got >= free - REVERSED:
        return []
    return [
        Harm(
            "reversed",
            f"the shortcut is reversed: the biased model is right on {100 * got:.0f} % of the weight, {100 * free:.0f} % by chance",
        )
    ]


def _not_noise(y: Tensor, opinion: Tensor, noisy: Tensor) -> list[Harm]:
    """Rows called noisy that are nothing but the rows which lack the shortcut."""
    away = opinion != y
    both = int((away & noisy).sum())
    if not both or both < SAME * int(noisy.sum()) or both < SAME * int(away.sum()):
        return []
    line = f"the {int(noisy.sum())} rows called noisy are the rows that lack the shortcut ({both} of {int(away.sum())}), not wrong labels"
    return [Harm("noise", line)]


def _raised(m: Measured) -> list[Harm]:
    before, after = m.before, m.after
    if before.bias is None or after.bias is None or before.high is None or after.low is None:
        return []
    if after.bias <= before.bias + RAISED or after.low <= before.high:
        return []
    line = f"more of the class can be read from {m.name} than before: {100 * before.bias:.0f} % before, {100 * after.bias:.0f} % after"
    return [Harm("raised", line)]


def change(first: Measured, found: Sequence[Harm]) -> str:
    """What became of what could be read: removed, less, hardly less, more or reversed; empty if it could not be measured."""
    if any(h.kind == "reversed" for h in found):
        return "reversed"
    before, after = first.before.bias, first.after.bias
    if before is None or after is None or before <= 0:
        return ""
    ratio = max(after, 0) / before
    if ratio < REMOVED:
        return "removed"
    return "less" if ratio < HARDLY else "hardly less" if ratio <= 1 + RAISED else "more"
