"""Leaks between splits: what names, folders and the order of files tell of the class. Never a shortcut of pixels.

A model does not see a file's name. But where neighbours in a series are alike and mostly of one class, a random split puts one of them
into training and the next into the test, and results are too good. Class folders, and names that contain the class, say nothing
new: they are notes. What is left after they are taken away is measured:

- `order`: the class of a file, guessed from the seven files before and after it in the natural order of their names;
- `name`: guessed from the pattern of the name, its digits replaced (`IMG_#` against `DSC#`);
- `folder`: guessed from the folders between source and file, besides those of classes and splits.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.splitting import natural
from unskew.stats.readers import class_balanced, spread_folds, with_constant
from unskew.stats.softmax import fit_softmax

REACH = 7  # files before, and after, that are looked at
DRAWS = 99  # of the bootstrap, and permutations of the baseline
LEAST = 0.55  # area under the curve below which nothing is said
FOLDS = 5
DECAY = 1e-1  # of the reader that shows by how much random splits flatter
SPLIT_FOLDERS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}
MOSTLY = 0.95  # share of the rows from which folders or names count as those of the classes


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak: the area under the curve with which it tells the class, and by how much a random split flatters."""

    kind: str  # order, name or folder
    auc: float  # of guessing the class of a row from others; mean over classes, one against the rest, by their shares
    low: float  # 95 % bootstrap interval
    high: float
    chance_high: float  # the largest over permuted labels
    n: int
    sentence: str
    command: str  # what to add to the command for splits that do not leak
    random: float = float("nan")  # class-balanced accuracy of a linear reader under a random split; NaN: no features were given
    apart: float = float("nan")  # under a split that keeps neighbours, or folders, on one side

    @property
    def flatters(self) -> float:
        """By how much accuracy under a random split is too good."""
        return self.random - self.apart


@dataclass(frozen=True, slots=True)
class Leaks:
    """Leaks that were found, and what names and folders say by design."""

    findings: tuple[Leak, ...]
    notes: tuple[str, ...]  # one grey line


def leaks(
    paths: Sequence[str], y: Tensor, classes: Sequence[str], *, features: Tensor | None = None, seed: int = 0
) -> Leaks:  # fmt: skip
    """What the paths of rows tell of their class `y`. Without paths, the order of the rows is looked at.

    `features` (n, D) of the rows, such as those of `low_resolution`, are read under a random split and under one that does not
    leak; the difference is what random splits flatter by.
    """
    if y.ndim != 1 or (len(paths) and len(paths) != len(y)):
        raise UserError(f"leaks: needs one class per row, and as many paths; got labels {tuple(y.shape)} and {len(paths)} paths")
    parts, stems, notes = (
        _without_classes(paths, y, classes) if len(paths) else ([()] * len(y), [f"{k}" for k in range(len(y))], ())
    )
    found = []
    if leak := _ordered(parts, stems, y, features, seed, bool(len(paths))):
        found.append(leak)
    texts = (("name", [re.sub(r"\d+", "#", s) for s in stems]), ("folder", ["/".join(p) for p in parts])) if len(paths) else ()
    for kind, values in texts:
        if leak := _grouped(kind, values, y, features, seed):
            found.append(leak)
    return Leaks(tuple(found), notes)


def _without_classes(
    paths: Sequence[str], y: Tensor, classes: Sequence[str]
) -> tuple[list[tuple[str, ...]], list[str], tuple[str, ...]]:  # fmt: skip
    """Folders and stems of the files without what names their class or split, and notes on what was taken away."""
    own = [classes[c].lower() for c in y.tolist()]
    folders = [PurePath(p).parent.parts for p in paths]
    shared = 0
    while all(len(f) > shared for f in folders) and len({f[shared] for f in folders}) == 1:
        shared += 1
    folders = [f[shared:] for f in folders]
    stems = [PurePath(p).stem for p in paths]
    notes = []
    if sum(name in (part.lower() for part in f) for f, name in zip(folders, own, strict=True)) >= MOSTLY * len(own):
        notes.append("class folders")
    if sum(name in stem.lower() for stem, name in zip(stems, own, strict=True)) >= MOSTLY * len(own):
        notes.append("class-named files")
    names = {c.lower() for c in classes}
    kept = [tuple(_unnamed(p, names) for p in f if p.lower() not in names | SPLIT_FOLDERS) for f in folders]
    told = (f"{' and '.join(notes)}: where the label comes from, not a finding",) if notes else ()
    return kept, [_unnamed(s, names) for s in stems], told


def _unnamed(text: str, names: set[str]) -> str:
    """A text without the names of classes.

    >>> _unnamed("Cat_0012", {"cat", "dog"})
    '_0012'
    """
    if not any(name in text.lower() for name in names):
        return text
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
    return re.sub(pattern, "", text, flags=re.IGNORECASE)


def _ordered(
    parts: Sequence[tuple[str, ...]], stems: Sequence[str], y: Tensor, features: Tensor | None, seed: int, files: bool
) -> Leak | None:  # fmt: skip
    """The leak of the order, if there is one. Files of equal names, in several folders, are put in random order."""
    lot = torch.rand(len(y), generator=stream(seed, "leaks", "ties")).tolist()
    keys = [
        (tuple(natural(p) for p in folder), natural(stem), lot[k])
        for k, (folder, stem) in enumerate(zip(parts, stems, strict=True))
    ]
    order = torch.tensor(sorted(range(len(keys)), key=lambda k: keys[k]))
    label = y[order]

    def guessed(codes: Tensor) -> Tensor:
        return neighbours(codes, int(y.max()) + 1)

    measured = _measured(guessed, label, seed)
    if measured is None:
        return None
    auc, low, high, chance = measured
    block = torch.empty_like(y)
    block[order] = torch.arange(len(y)) // max(4 * REACH, len(y) // 40)
    random, apart = _flattered(features, y, block, seed)
    what = "files" if files else "rows"
    sentence = (
        f"The order of the {what} tells the class (area under the curve {auc:.2f}, {low:.2f} to {high:.2f}): neighbours are of one "
        f"class{_difference(random, apart)}."
    )
    return Leak("order", auc, low, high, chance, len(y), sentence, "data.order=name" if files else "", random, apart)


def _grouped(kind: str, values: Sequence[str], y: Tensor, features: Tensor | None, seed: int) -> Leak | None:
    """The leak of a text that rows share, if there is one."""
    known = {value: k for k, value in enumerate(dict.fromkeys(values))}
    code = torch.tensor([known[v] for v in values])
    if not 2 <= len(known) <= len(y) / 2:
        return None

    def guessed(codes: Tensor) -> Tensor:
        return alike(codes, code, spread_folds(codes, FOLDS, seed), int(y.max()) + 1)

    measured = _measured(guessed, y, seed)
    if measured is None:
        return None
    auc, low, high, chance = measured
    random, apart = _flattered(features, y, code, seed)
    what = "pattern of the file's name" if kind == "name" else "folder that a file is in"
    example = ", ".join(f"{v or 'none'}" for v in list(known)[:2])
    sentence = (
        f"The {what} ({example}{', ...' if len(known) > 2 else ''}) tells the class (area under the curve {auc:.2f}, {low:.2f} to "
        f"{high:.2f}){_difference(random, apart)}."
    )
    column = f"--group {kind}  # with a column {kind!r} in metadata.csv"
    return Leak(kind, auc, low, high, chance, len(y), sentence, column, random, apart)


def neighbours(label: Tensor, classes: int, reach: int = REACH) -> Tensor:
    """(n, C) share of each class among the rows up to `reach` before and after each row, without the row itself.

    >>> neighbours(torch.tensor([0, 0, 1]), 2, reach=1).tolist()
    [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]
    """
    hot = torch.nn.functional.one_hot(label, classes).double()
    total = torch.cat([hot.new_zeros(1, classes), hot.cumsum(0)])
    place = torch.arange(len(label))
    first, last = (place - reach).clamp(min=0), (place + reach + 1).clamp(max=len(label))
    return (total[last] - total[first] - hot) / (last - first - 1).clamp(min=1)[:, None]


def alike(label: Tensor, code: Tensor, fold: Tensor, classes: int) -> Tensor:
    """(n, C) share of each class among the rows of the same code in other folds, drawn towards the share of all rows by one row's worth.

    Leaving out only the row itself would make every row look like the other class.

    >>> label, fold = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    >>> alike(label, label, fold, 2)[0].tolist()
    [0.75, 0.25]
    """
    hot = torch.nn.functional.one_hot(label, classes).double()
    folds, codes = int(fold.max()) + 1, int(code.max()) + 1
    table = (
        torch.zeros(folds * codes, classes, dtype=torch.float64)
        .index_add_(0, fold * codes + code, hot)
        .view(folds, codes, classes)
    )
    others = (table.sum(0) - table)[fold, code]
    return (others + hot.mean(0)) / (others.sum(1, keepdim=True) + 1)


def area(score: Tensor, label: Tensor) -> float:
    """Area under the curve of the scores (n, C), each class against the rest, averaged by the classes' shares; ties count half.

    >>> area(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
    1.0
    """
    total = 0.0
    for c in torch.unique(label).tolist():
        own, rest = score[label == c, c], score[label != c, c].sort().values
        below = torch.searchsorted(rest, own)
        equal = torch.searchsorted(rest, own, right=True) - below
        total += float((below + 0.5 * equal).double().mean()) / max(1, len(rest)) * len(own)
    return total / len(label)


def _measured(guessed: Callable[[Tensor], Tensor], label: Tensor, seed: int) -> tuple[float, float, float, float] | None:
    """Area, interval, and the largest area over permuted labels; None if it is not above that."""
    score = guessed(label)
    value = area(score, label)
    generator = stream(seed, "leaks", "chance")
    if value < LEAST:
        return None
    null = []
    for _ in range(DRAWS):
        mixed = label[torch.randperm(len(label), generator=generator)]
        null.append(area(guessed(mixed), mixed))
        if null[-1] >= value:
            return None
    drawn = []
    for _ in range(DRAWS):
        rows = torch.randint(0, len(label), (len(label),), generator=generator)
        drawn.append(area(score[rows], label[rows]))
    ends = torch.tensor(drawn, dtype=torch.float64).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    return (value, float(ends[0]), float(ends[1]), max(null)) if float(ends[0]) > 0.5 else None


def _flattered(features: Tensor | None, y: Tensor, unit: Tensor, seed: int) -> tuple[float, float]:
    """Class-balanced accuracy of a linear reader under a random split, and under one that divides no unit."""
    if features is None:
        return float("nan"), float("nan")
    x, classes = with_constant(features), int(y.max()) + 1
    count = int(unit.max()) + 1
    apart = (torch.randperm(count, generator=stream(seed, "leaks", "units")) % FOLDS)[unit]
    weight = class_balanced(y)
    return tuple(_accuracy(x, y, fold, weight, classes) for fold in (spread_folds(y, FOLDS, seed), apart))  # type: ignore[return-value]


def _accuracy(x: Tensor, y: Tensor, fold: Tensor, weight: Tensor, classes: int) -> float:
    used = torch.unique(fold)
    outside = (fold[:, None] != used).to(x.dtype) * weight[:, None].to(x.dtype)
    outside = outside / outside.sum(0).clamp(min=1e-30)
    w = fit_softmax(x, y[:, None].expand(-1, len(used)).contiguous(), outside, (DECAY,), classes, tolerance=1e-5)[0]
    guess = torch.einsum("nf,kfc->nkc", x, w)[torch.arange(len(x)), torch.searchsorted(used, fold)].argmax(1)
    return float((weight * (guess == y).double()).mean())


def _difference(random: float, apart: float) -> str:
    """By how much a random split flatters, in words; empty if it is not known."""
    if random != random:
        return "; a random split puts them on both sides"
    scores = f"{100 * random:.0f} % under a random split and {100 * apart:.0f} % under one that keeps them apart"
    return f"; a linear reader of the pictures scores {scores}"
