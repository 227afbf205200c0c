"""The verdict on a run: pure functions of its group tables, each with its threshold here, and the sentence for a reader.

================= ====================================================================================================
collapsed         at least 95 % of the predictions are one class; fewer than 95 % of the rows are, and less than half as
                  many rows are given another class as have one
inverted          aligned accuracy is below 1 / classes, its whole interval too, and below the interval of conflicting
memorised         accuracy on training rows is at least 30 points above that on the rows judged, intervals apart:
                  of at least 10 conflicting rows, else of one group of at least 30 rows in both, else, without a bias
                  column, of all rows
under-trained     class-balanced accuracy on training rows has gone less than a fifth of the way from chance to 100 %
takes-shortcut    aligned minus conflicting accuracy: the interval is above 5 points
leans             ... above 0
worse-aligned     ... below 0
no-shortcut       ... below 5 points, and contains 0
unclear           ... too wide to tell, or undefined
no-bias-column    no bias column: the worst class is named
multi-label       rows have several labels: shares of right labels by bias value
================= ====================================================================================================

In this order of seriousness. A run judged on another source is not called memorised: the other rows may just be harder.
"""

import math
from collections.abc import Sequence

from unskew.records import SMALL_GROUP, Cell, Estimate, Groups, Verdict
from unskew.stats.intervals import newcombe

COLLAPSED = 0.95  # share of the predictions in one class
MEMORISED = 0.30  # train minus test accuracy
LEAST_ROWS = 10  # of conflicting rows, to call them memorised
UNDER_TRAINED = 0.20  # of the way from chance to all correct, on training rows
SHORTCUT = 0.05  # aligned minus conflicting accuracy

Said = tuple[str, str]  # kind and sentence


def percent(value: float, digits: int = 1) -> str:
    return "undefined" if value is None or math.isnan(value) else f"{100 * value:.{digits}f} %"


def judge_groups(
    groups: Groups,
    *,
    multi_label: bool = False,
    train: Groups | None = None,
    predicted: Sequence[int] = (),
    rows: Sequence[int] = (),
    own_rows: bool = True,
) -> Verdict:
    """Everything that applies to these groups, the most serious first.

    `train` is the table of training rows; `predicted` and `rows` count the rows given each class and those that have it;
    `own_rows` says that the rows judged are of the source that the run was trained on.
    """
    if multi_label:
        found = [memorised(groups, train) if own_rows else None]
        return _verdict([s for s in found if s] + [_of_labels(groups)])
    broken = [s for s in (collapsed(groups.classes, predicted, rows),) if s]
    serious = [inverted(groups), memorised(groups, train) if own_rows else None, under_trained(train)]
    broken += [s for s in serious if s]
    kinds = {kind for kind, _ in broken}
    last = shortcut(groups)
    if last[0] == "worse-aligned" and "inverted" in kinds:
        return _verdict(broken)
    if kinds & {"collapsed", "under-trained"} and last[0] in ("no-shortcut", "unclear", "worse-aligned"):
        # A model that has learnt nothing does not take the shortcut either: that is no good news.
        return _verdict(broken, f"{percent(groups.plain.value)} of the rows are right.")
    return _verdict([*broken, last])


def collapsed(classes: Sequence[str], predicted: Sequence[int], rows: Sequence[int]) -> Said | None:
    """Nearly all predictions are one class, though the rows are not.

    >>> collapsed(["a", "b"], [98, 2], [50, 50])[0]
    'collapsed'
    >>> collapsed(["a", "b"], [95, 5], [94, 6]) is None  # the rows are nearly so themselves
    True
    """
    total = sum(predicted)
    if not total:
        return None
    most = max(range(len(predicted)), key=lambda c: predicted[c])
    said, have = predicted[most] / total, rows[most] / sum(rows)
    if said < COLLAPSED or have >= COLLAPSED or (1 - said) >= (1 - have) / 2:
        return None
    counted = f"{percent(said)} of {total} predictions are {classes[most]}, the class of {percent(have)} of the rows."
    return "collapsed", f"Collapsed to one class: {counted}"


def inverted(groups: Groups) -> Said | None:
    """The bias points the model away from the class: worse than chance where it agrees, better where it does not."""
    a, c, chance = groups.aligned, groups.conflicting, 1 / len(groups.classes)
    if math.isnan(a.value) or math.isnan(c.value) or not (a.high < chance and a.high < c.low):
        return None
    names = " and ".join(groups.bias_names)
    return "inverted", (
        f"Inverted: {percent(a.value)} right where {names} agrees with the class, below chance ({percent(chance)}), "
        f"and {percent(c.value)} where it does not: the model reads {names} and answers the opposite."
    )


def memorised(groups: Groups, train: Groups | None) -> Said | None:
    """Rows seen in training are right and others like them are wrong."""
    if train is None:
        return None
    # Without groups, rows that lack a shortcut look the same as rows that were not learnt by heart.
    hedge = "" if groups.bias_names else ", or relying on something that the new rows lack"
    if _apart(train.conflicting, groups.conflicting):
        return "memorised", _remembered("conflicting rows", train.conflicting, groups.conflicting)
    seen = {(c.y, c.bias): c for c in train.cells if not c.small}
    pairs = [(_of(seen[c.y, c.bias]), _of(c), c) for c in groups.cells if not c.small and (c.y, c.bias) in seen]
    pairs = [p for p in pairs if _apart(p[0], p[1])]
    if pairs:
        before, now, cell = max(pairs, key=lambda p: p[0].value - p[1].value)
        more = f" (and {len(pairs) - 1} more groups)" if len(pairs) > 1 else ""
        return "memorised", _remembered(f"rows of {_name(groups, cell)}{more}", before, now, hedge)
    if not groups.bias_names and _apart(train.plain, groups.plain):
        return "memorised", _remembered("rows", train.plain, groups.plain, hedge)
    return None


def under_trained(train: Groups | None) -> Said | None:
    """Even the training rows are hardly better than guessed.

    Class-balanced, so that neither the largest class nor weights on the rows count as learning.
    """
    if train is None or math.isnan(train.class_balanced.value) or len(train.classes) < 2:
        return None
    chance, reached = 1 / len(train.classes), train.class_balanced.value
    if (reached - chance) / (1 - chance) >= UNDER_TRAINED:
        return None
    return "under-trained", (
        f"Under-trained: {percent(reached)} of its own training rows are right (class-balanced), where guessing gives "
        f"{percent(chance)}; train longer or with a larger learning rate, or look whether the inputs show the class."
    )


def shortcut(groups: Groups) -> Said:
    """Does the model take the shortcut, and by how much? Without a bias column: which class is worst?"""
    right = f"{percent(groups.plain.value)} of the rows are right"
    names = " and ".join(groups.bias_names)
    if not names:
        return "no-bias-column", f"No bias column was given, so only classes can be compared: {right}; {worst_class(groups)}."
    a, c = groups.aligned, groups.conflicting
    if math.isnan(a.value) or math.isnan(c.value):
        why = a.reason or c.reason
        return "unclear", f"Whether the model leans on {names} cannot be told from this split ({why}); {right}."
    gap, low, high = difference(a, c)
    figures = (
        f"{percent(a.value)} right where {names} agrees with the class, {percent(c.value)} where it does not "
        f"(difference {100 * gap:.1f} points, 95 % interval {100 * low:.1f} to {100 * high:.1f})."
    )
    if low > SHORTCUT:
        return "takes-shortcut", f"The model takes the shortcut: {figures}"
    if low > 0:
        return "leans", f"The model leans a little on {names}: {figures}"
    if high < 0:
        return "worse-aligned", f"The model is worse where {names} agrees with the class: {figures}"
    if high < SHORTCUT:
        return "no-shortcut", f"No sign of the shortcut: {figures}"
    return "unclear", f"Too few rows to tell whether the model takes the shortcut: {figures}"


def worst_class(groups: Groups) -> str:
    """The class with the lowest accuracy: one of at least 30 rows if there is any, and beside it a smaller one that is lower still."""
    if not groups.cells:
        return "no class has rows"
    worst = min([c for c in groups.cells if not c.small] or groups.cells, key=lambda c: c.accuracy)
    text = f"worst class: {_right(groups, worst)}"
    if worst.small:
        return f"{text}, under {SMALL_GROUP}"
    lowest = min(groups.cells, key=lambda c: c.accuracy)
    return f"{text} (perhaps {_right(groups, lowest)}: too few to be sure)" if lowest.small else text


def _right(groups: Groups, cell: Cell) -> str:
    return f"{groups.classes[cell.y]}, {percent(cell.accuracy)} of {cell.n} rows"


def difference(a: Estimate, b: Estimate) -> tuple[float, float, float]:
    """a - b with Newcombe's interval, from the two Wilson intervals."""
    return newcombe((a.value, a.low, a.high), (b.value, b.low, b.high))


def _of_labels(groups: Groups) -> Said:
    span = ", ".join(f"{percent(c.accuracy)} for {_values(groups, c)}" for c in groups.cells[:6]) if groups.bias_names else ""
    span += f" and {len(groups.cells) - 6} more groups" if span and len(groups.cells) > 6 else ""
    right = f"{percent(groups.plain.value)} of the labels are right"
    return "multi-label", f"Rows have several labels: {right}{': ' + span if span else ''}."


def _apart(train: Estimate, test: Estimate) -> bool:
    if math.isnan(train.value) or math.isnan(test.value):
        return False
    return min(train.n, test.n) >= LEAST_ROWS and train.value - test.value >= MEMORISED and train.low > test.high


def _remembered(what: str, train: Estimate, test: Estimate, hedge: str = "") -> str:
    return (
        f"Memorised{hedge}: of the {what}, {percent(train.value)} are right in training (n {train.n}) and {percent(test.value)} of those "
        f"it has not seen (n {test.n})."
    )


def _of(cell: Cell) -> Estimate:
    return Estimate(cell.accuracy, cell.low, cell.high, cell.n)


def _name(groups: Groups, cell: Cell) -> str:
    return " × ".join(v for v in (groups.classes[cell.y], _values(groups, cell)) if v)


def _values(groups: Groups, cell: Cell) -> str:
    return " × ".join(v[c] for v, c in zip(groups.bias_values, cell.bias, strict=True))


def _verdict(said: Sequence[Said], after: str = "") -> Verdict:
    return Verdict(said[0][0], " ".join([s for _, s in said] + ([after] if after else [])), tuple(k for k, _ in said))
