"""Splits that the source lacks, taken from its training rows so that nothing leaks: whole groups, whole sets of twins, or by order."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from unskew.core.errors import UserError, suggest
from unskew.core.rng import stream
from unskew.data.duplicates import MOST_ROWS, TOO_MANY, told
from unskew.data.reading import DataConfig

CLASS_BY_CLASS = "class by class"
BLOCKS = 50  # that the files are divided into where their order counts: a tenth of the rows comes from five places
BLOCK = 10  # files of a block, at least, where there are enough
_HELD_OUT = ((2, "test"), (1, "val"))  # test first: a set too small for both needs it for evaluation


@dataclass(frozen=True)
class Splitting:
    """The splits of a source after the missing ones were carved."""

    split: Tensor  # (N,) codes
    carved: tuple[str, ...] = ()
    how: str = CLASS_BY_CLASS  # as in: the val split was taken from the training rows, HOW
    notes: tuple[str, ...] = ()
    duplicate_of: Tensor | None = None  # (N,) first row of each row's near-duplicates, -1: none; None: not looked for

    def fields(self, *notes: str) -> dict[str, Any]:
        """The fields of a DataSet; `notes` come first."""
        return {
            "split": self.split,
            "carved": self.carved,
            "carved_how": self.how,
            "notes": (*notes, *self.notes),
            "duplicate_of": self.duplicate_of,
        }


def settle(
    y: Tensor,
    split: Tensor,
    cfg: DataConfig,
    where: str,
    *,
    columns: pl.DataFrame | None = None,
    paths: Sequence[str] = (),
    twins: Callable[[], Tensor] | None = None,
) -> Splitting:
    """Carve what is missing of val and test. `twins` finds near-duplicates; None if the rows are not images."""
    columns = pl.DataFrame() if columns is None else columns
    group = group_codes(columns, cfg.group, where) if cfg.group else None
    rank = _ranks(columns, paths, cfg.order, where) if cfg.order else None
    there = set(torch.unique(split).tolist())
    has_test = bool(there - {0, 1})  # a split test_biased is a test too
    missing = [(c, n) for c, n in _HELD_OUT if not (has_test if c == 2 else c in there)]
    carving = bool(missing) and cfg.holdout > 0 and 0 in there
    notes, alike = [], None
    if cfg.duplicates and twins is not None and (carving or len(there) > 1):
        if len(y) > MOST_ROWS:
            notes.append(TOO_MANY)
        else:
            alike = twins()
    notes += _straddling(group, split, cfg.group, columns)
    if alike is not None and (crossing := told(alike, y, split).crossing):
        notes.append(f"{crossing} sets of near-duplicate images have rows in more than one of the given splits")
    if not carving:
        notes += [f"data.order={cfg.order} changed nothing: no split was carved"] if cfg.order else []
        return Splitting(split, notes=tuple(notes), duplicate_of=alike)
    pool = split == 0
    twin = None if alike is None else within(alike, pool)
    unit = units(len(y), group, twin)
    if rank is not None and cfg.order in columns.columns:
        done, carved, how = by_order(y, split, missing, cfg.holdout, rank, unit, cfg.order)
    elif rank is not None:
        done, carved = carve_splits(y, split, cfg.holdout, cfg.seed, blocks(rank, unit, pool), missing)
        how = "in blocks of neighbouring files, class by class as nearly as they allow"
    else:
        done, carved = carve_splits(y, split, cfg.holdout, cfg.seed, unit, missing)
        how = CLASS_BY_CLASS if group is None else f"in whole groups of {cfg.group}, class by class as nearly as they allow"
    if cfg.group and not carved:
        raise UserError(
            f"{where}: no split can be taken from the training rows without dividing a value of {cfg.group!r}; "
            "name a split column with --split, or set data.holdout=0"
        )
    if twin is not None and (kept := int((twin >= 0).sum())):
        notes.append(f"{kept} near-duplicate images were kept on one side with their twins")
    if y.ndim == 1:
        notes += _without(y, done, missing, carved) if group is not None or rank is not None else []
    return Splitting(done, carved, how, tuple(notes), alike)


def group_codes(columns: pl.DataFrame, name: str, where: str) -> Tensor:
    """(N,) codes of the group column, -1 where it is empty."""
    if name not in columns.columns:
        raise UserError(
            f"{where}: no group column {name!r}{suggest(name, columns.columns) if columns.columns else ': no columns'}"
        )
    series = columns[name]
    if series.dtype.is_nested():
        raise UserError(f"{where}: group column {name!r} holds {series.dtype}, not single values")
    text = (series.fill_nan(None) if series.dtype.is_float() else series).cast(pl.String).str.strip_chars().replace("", None)
    return torch.from_numpy((text.rank("dense").cast(pl.Int64).fill_null(0) - 1).to_numpy().copy())


def _ranks(columns: pl.DataFrame, paths: Sequence[str], order: str, where: str) -> Tensor:
    """(N,) the place of every row in the order of a column, or of the names of files; a row without a value comes first."""
    if order in columns.columns:
        series = columns[order]
        if series.dtype.is_nested():
            raise UserError(f"{where}: data.order={order}: the column holds {series.dtype}, not single values")
        series = series.fill_nan(None) if series.dtype.is_float() else series
        text = series.dtype == pl.String or series.dtype == pl.Categorical or isinstance(series.dtype, pl.Enum)
        values = (series.cast(pl.String) if text else series).to_list()
        keys: list[tuple[Any, ...]] = [(False,) if v is None else (True, natural(v) if text else v) for v in values]
        place = sorted(range(len(keys)), key=lambda k: keys[k])
    elif order == "name" and len(paths):
        place = sorted(range(len(paths)), key=lambda k: (natural(PurePath(paths[k]).name), natural(str(paths[k]))))
    else:
        allowed = suggest(order, columns.columns) if columns.columns else ""
        raise UserError(
            f"{where}: data.order={order}: no such column{allowed}{'; name stands for file names' if len(paths) else ''}"
        )
    rank = torch.empty(len(place), dtype=torch.long)
    rank[torch.tensor(place)] = torch.arange(len(place))
    return rank


def blocks(rank: Tensor, unit: Tensor, pool: Tensor) -> Tensor:
    """(N,) runs of neighbours in the order, so that few rows have a neighbour on another side; a unit is where its first row is.

    The last files alone would do too, but what comes last may be unlike the rest: another day, another machine, one class.

    >>> blocks(torch.arange(6), torch.tensor([0, 1, 2, 0, 4, 5]), torch.ones(6, dtype=torch.bool)).tolist()
    [0, 1, 2, 0, 4, 5]
    """
    rows = rank[pool].argsort().argsort()
    first = torch.full((int(unit.max()) + 1,), len(rank)).scatter_reduce(0, unit[pool], rows, "amin")[unit]
    number = max(min(BLOCKS, len(rows) // BLOCK), min(10, len(rows)))
    return first * number // max(1, len(rows))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts numbers inside text by their value.

    >>> sorted(["img10.png", "img9.png", "IMG1.png"], key=natural)
    ['IMG1.png', 'img9.png', 'img10.png']
    """
    return tuple((0, int(t), "") if t.isdecimal() else (1, 0, t) for t in re.split(r"(\d+)", text.lower()) if t)


def _straddling(group: Tensor | None, split: Tensor, name: str, columns: pl.DataFrame) -> list[str]:
    """What the given splits do to the groups, in a sentence or none."""
    if group is None:
        return []
    known = group >= 0
    pairs = torch.unique(torch.stack([group[known], split[known]], 1), dim=0)
    count = pairs[:, 0].bincount() if len(pairs) else torch.zeros(0)
    notes = []
    if (count > 1).any():
        first = int((count > 1).nonzero()[0])
        example = columns[name][int((group == first).nonzero()[0])]
        notes.append(
            f"{int((count > 1).sum())} of {int((count > 0).sum())} values of {name} have rows in more than one of the given splits, "
            f"such as {example}: results on these splits may be too good"
        )
    if not bool(known.all()):
        notes.append(f"{int((~known).sum())} rows have no value of {name}; they are split one by one")
    return notes


def _without(y: Tensor, split: Tensor, missing: Sequence[tuple[int, str]], carved: Sequence[str]) -> list[str]:
    """Which carved splits lack classes that the training rows have."""
    notes = []
    classes = torch.unique(y[split == 0])
    for code, name in missing:
        lacking = int((~torch.isin(classes, y[split == code])).sum())
        if name not in carved:
            notes.append(f"there is no {name} split: too few training rows can be moved as a whole")
        elif lacking:
            notes.append(f"{lacking} of {len(classes)} classes have no rows in the {name} split, as their rows cannot be divided")
    return notes


def within(twins: Tensor, pool: Tensor) -> Tensor:
    """The sets of twins among some rows only: -1 for a row that is left alone there.

    >>> within(torch.tensor([0, 0, 2, 2, -1]), torch.tensor([True, True, True, False, True])).tolist()
    [0, 0, -1, -1, -1]
    """
    inside = torch.where(pool, twins, -1)
    count = inside[inside >= 0].bincount(minlength=len(twins))
    return torch.where((inside >= 0) & (count[inside.clamp(min=0)] > 1), inside, -1)


def units(n: int, *codes: Tensor | None) -> Tensor:
    """(N,) rows that must stay together have the same number: those that share any code, directly or through others.

    >>> units(5, torch.tensor([0, 0, 1, -1, -1]), torch.tensor([-1, 4, 4, -1, -1])).tolist()
    [0, 0, 0, 1, 2]
    """
    rows, ends, offset = [], [], n
    for code in codes:
        if code is not None and bool((code >= 0).any()):
            known = (code >= 0).nonzero().flatten().numpy()
            rows.append(known)
            ends.append(code.numpy()[known] + offset)
            offset += int(code.max()) + 1
    if not rows:
        return torch.arange(n)
    i, j = np.concatenate(rows), np.concatenate(ends)
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(offset, offset))
    member = connected_components(graph, directed=False)[1][:n]
    return torch.from_numpy(np.unique(member, return_inverse=True)[1].astype(np.int64))


def carve_splits(
    y: Tensor,
    split: Tensor,
    share: float,
    seed: int,
    unit: Tensor | None = None,
    missing: Sequence[tuple[int, str]] | None = None,
) -> tuple[Tensor, tuple[str, ...]]:
    """Fill a missing val or test split from the training rows: `share`, and at least one row, of every class of more than two.

    Rows of one unit stay together; then shares are as near as whole units allow. Without units of several rows, the draw is that
    of every version so far.
    """
    split, carved = split.clone(), []
    if missing is None:
        missing = [(code, name) for code, name in _HELD_OUT if not bool((split == code).any())]
    for code, name in missing if share > 0 else []:
        train = (split == 0).nonzero().flatten()
        order = torch.randperm(len(train), generator=stream(seed, "split", name))
        train = train[order]
        # A multi-label row has no single class: draw from all rows alike.
        label = y[train] if y.ndim == 1 else torch.zeros(len(train), dtype=torch.long)
        if unit is None or len(torch.unique(unit[train])) == len(train):
            take = single_rows(label, share)
        else:
            take = torch.tensor(whole_units(label.tolist(), unit[train].tolist(), share), dtype=torch.long)
        if len(take):
            split[train[take]] = code
            carved.append(name)
    return split, tuple(carved)


def single_rows(label: Tensor, share: float) -> Tensor:
    """Places of the rows to hold out: the first of every class, in the given order. What `whole_units` takes of units of one row.

    >>> single_rows(torch.tensor([0, 0, 0, 1, 0, 1, 1]), share=0.5).tolist()
    [0, 1, 3, 5]
    """
    codes, counts = torch.unique(label, return_inverse=True, return_counts=True)[1:]
    aim = torch.tensor([max(1, round(share * n)) if n > 2 else 0 for n in counts.tolist()], dtype=torch.long)
    order = codes.argsort(stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - (counts.cumsum(0) - counts)[codes[order]]
    return (rank < aim[codes]).nonzero().flatten()


def whole_units(label: Sequence[int], unit: Sequence[int], share: float) -> list[int]:
    """Places of the rows to hold out, in the given order: whole units, as near to `share` of every class as they allow.

    Units are taken in order while they fit. Then those that bring the shares nearer to their aim are added; last, a class that
    got none gets its smallest unit if at least half of the rows of every class in it remain.

    >>> whole_units([0, 0, 0, 0, 1, 1, 1, 1], [7, 8, 9, 7, 1, 2, 3, 4], share=0.25)
    [1, 4]
    """
    total, rows_of = Counter(label), Counter(unit)
    aim = {c: max(1, round(share * n)) if n > 2 else 0 for c, n in total.items()}
    members: dict[int, list[int]] = {}  # of units of several rows; the others need no lists of their own
    for place, u in enumerate(unit):
        if rows_of[u] > 1:
            members.setdefault(u, []).append(place)
    counts = {u: Counter(label[p] for p in places) for u, places in members.items()}
    have: Counter[int] = Counter()
    single: list[int] = []  # places of units of one row
    chosen: list[int] = []  # units of several rows

    def add(u: int) -> None:
        chosen.append(u)
        have.update(counts[u])

    for place, (c, u) in enumerate(zip(label, unit, strict=True)):
        if u not in members:
            if have[c] < aim[c]:
                have[c] += 1
                single.append(place)
        elif members[u][0] == place and all(have[d] + n <= aim[d] for d, n in counts[u].items()):
            add(u)

    def spare(u: int) -> bool:
        return all(2 * (total[c] - have[c] - n) >= total[c] for c, n in counts[u].items())

    while True:
        taken = set(chosen)
        gain = {u: _gain(counts[u], have, aim) for u in members if u not in taken and spare(u)}
        best = max(gain, key=lambda u: gain[u], default=None)
        if best is None or gain[best] <= 0:
            break
        add(best)
    for c in sorted(aim):
        if aim[c] and not have[c]:
            able = [u for u in members if counts[u][c] and u not in set(chosen) and spare(u)]
            if able:
                add(min(able, key=lambda u: len(members[u])))
    return sorted([*single, *(p for u in chosen for p in members[u])])


def _gain(count: Counter[int], have: Counter[int], aim: dict[int, int]) -> int:
    """By how many rows the classes come nearer to their aim."""
    return sum(abs(have[c] - aim[c]) - abs(have[c] + n - aim[c]) for c, n in count.items())


def by_order(
    y: Tensor, split: Tensor, missing: Sequence[tuple[int, str]], share: float, rank: Tensor, unit: Tensor, by: str
) -> tuple[Tensor, tuple[str, ...], str]:
    """The last rows are the test, those before them val; and how it was done.

    Over all rows, as with time; class by class where the order is (nearly) that of the classes, so that blocks would hold fewer
    than half of them, or only one, or leave a class without training rows.
    """
    label = y if y.ndim == 1 else torch.zeros(len(y), dtype=torch.long)
    done, carved = _last_rows(torch.zeros_like(label), split, missing, share, rank, unit)
    classes = torch.unique(label[split == 0])
    blocks = [torch.unique(label[done == code]) for code, title in missing if title in carved]
    kept = len(torch.unique(label[done == 0])) == len(classes)
    if kept and all(len(block) >= min(len(classes), max(2, len(classes) / 2)) for block in blocks):
        return done, carved, f"the last rows by {by}"
    done, carved = _last_rows(label, split, missing, share, rank, unit)
    return done, carved, f"the last rows of every class by {by}, as the last rows of all would lack classes or take one whole"


def _last_rows(
    label: Tensor, split: Tensor, missing: Sequence[tuple[int, str]], share: float, rank: Tensor, unit: Tensor
) -> tuple[Tensor, tuple[str, ...]]:
    """The last `share` of the training rows of every label; a unit goes with its last row, so that no later row is trained on."""
    split, carved = split.clone(), []
    members: dict[int, list[int]] = {}
    for row, u in enumerate(unit.tolist()):
        members.setdefault(u, []).append(row)
    for code, name in missing:
        for c in torch.unique(label[split == 0]).tolist():
            rows = ((split == 0) & (label == c)).nonzero().flatten()
            aim = max(1, round(share * len(rows))) if len(rows) > 2 else 0
            have = 0
            for u in dict.fromkeys(unit[rows[rank[rows].argsort(descending=True)]].tolist()):
                whole = torch.tensor(members[u])
                whole = whole[split[whole] == 0]
                size = int((label[whole] == c).sum())
                nearer = have < aim and (have == 0 or size <= 2 * (aim - have))
                if not nearer or 2 * (len(rows) - have - size) < len(rows):
                    break
                split[whole] = code
                have += size
        if bool((split == code).any()):
            carved.append(name)
    return split, tuple(carved)
