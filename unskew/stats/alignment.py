"""Aligned pairs: the (class, bias value) pairs that training teaches, from counts, and the same in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MORE_THAN_CHANCE = 1 + 1e-9  # a lift of exactly 1 must not become "more often than by chance" through rounding
BUILT = "as built"
COUNTED = "more often together in training than by chance, and the common case of the class"
_MOST = 6  # pairs named in a sentence


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which pairs are aligned and which neither aligned nor conflicting: a (classes, values) matrix per bias column."""

    aligned: tuple[Tensor, ...]
    neither: tuple[Tensor, ...]
    rule: str

    def of_rows(self, y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """(aligned, conflicting) of rows (N,) with bias codes (N, A): aligned in every column, or conflicting in one.

        Rows with a missing value (-1) are neither.
        """
        known, codes = (bias >= 0).all(1), bias.clamp(min=0).unbind(1)
        agrees = torch.stack([a[y, b] for a, b in zip(self.aligned, codes, strict=True)])
        neutral = torch.stack([a[y, b] for a, b in zip(self.neither, codes, strict=True)])
        return known & agrees.all(0), known & (~agrees & ~neutral).any(0)


def aligned_pairs(counts: Tensor) -> tuple[Tensor, Tensor]:
    r"""(aligned, neither), each (C, V), from the counts of training rows by class and bias value.

    .. math::
        \text{aligned}_{yb} \iff l_{yb} > 1, \quad n_{yb} \ge \frac{n_y}{V}, \quad
        n_{yb} > \max_{b'} \{n_{yb'} : l_{yb'} \le 1 \text{ or } n_{yb'} < n_y / V\}, \qquad
        l_{yb} = \frac{n_{yb} N}{n_y n_b}

    V counts the values that occur. The first condition alone would call a rare case aligned where the values are unbalanced: of
    a class with 75 % of its rows indoors, when 80 % of all rows are, the outdoor quarter is over-represented. Of a class
    without an aligned pair no pair is conflicting either; nor is a pair that is over-represented but not common in its class.

    >>> aligned, neither = aligned_pairs(torch.tensor([[75, 25], [85, 15]]))  # the second class is the more indoor one
    >>> aligned.tolist(), neither.tolist()
    ([[False, False], [True, False]], [[True, True], [False, False]])
    """
    n = counts.double()
    of_class, of_value = n.sum(1, keepdim=True), n.sum(0, keepdim=True)
    over = n * n.sum() > MORE_THAN_CHANCE * of_class * of_value
    common = n * int((of_value > 0).sum()) >= of_class
    candidate = over & common
    highest = torch.where(candidate, -1.0, n).amax(1, keepdim=True)  # of the class's other values
    aligned = candidate & (n > highest)
    neither = ~aligned.any(1, keepdim=True) | (over & ~aligned)
    return aligned, neither


def in_words(name: str, classes: Sequence[str], values: Sequence[str], aligned: Tensor, neither: Tensor, rule: str) -> str:
    """What aligned means for one bias column, with the pairs by name.

    >>> pairs, neither = aligned_pairs(torch.tensor([[9, 1], [2, 8]]))
    >>> in_words("place", ["cat", "dog"], ["in", "out"], pairs, neither, BUILT)
    'aligned: the (class, place) pairs that the data set was built with: cat-in, dog-out; conflicting: the others'
    """
    what = "that the data set was built with"
    if rule != BUILT:
        what = "that occur more often together in training than by chance and are the common case of their class"
    pairs = [f"{classes[y]}-{values[b]}" for y, b in aligned.nonzero().tolist()]
    if not pairs:
        return f"aligned: no (class, {name}) pair, because none is common in its class and more often there than by chance"
    none = [classes[y] for y in range(len(classes)) if not bool(aligned[y].any()) and bool(neither[y].all())]
    odd = [f"{classes[y]}-{values[b]}" for y, b in neither.nonzero().tolist() if classes[y] not in none]
    parts = [f"aligned: the (class, {name}) pairs {what}: {_listed(pairs)}", "conflicting: the others"]
    if none:
        which = "class" if len(none) == 1 else "classes"
        parts.append(
            f"neither: all rows of {which} {_listed(none)}, where no {name} is both common and more often than by chance"
        )
    if odd:
        parts.append(f"neither, because more often than by chance but rare in their class: {_listed(odd)}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
