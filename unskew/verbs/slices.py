"""Slices of an audited data set: a stratified sample, features from the cache, and the columns that a table of scores gets."""

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.matrix import Rows
from unskew.data.dataset import DataSet
from unskew.data.pictures import thumbnails
from unskew.features import Spec
from unskew.measure.learning_curve import expected_error
from unskew.measure.position_map import place_of
from unskew.measure.representation_bias import BiasEstimate
from unskew.parts.opinion import reference_logits
from unskew.parts.picture_part import GRID, standing_out
from unskew.parts.slicing import Nuisance, Sliced, slice_rows
from unskew.records import Collect, Doubt, Shown, Slice, Slices, Table
from unskew.stats.intervals import wilson
from unskew.stats.sample import stratified
from unskew.training.simple import part_features, pixel_features, slice_features

SAMPLE = 2000  # rows, unless the user names another number
PICTURES = 8  # of a slice
MOST_DOUBTS = 24  # label errors listed with a picture; the table has all
ENOUGH = 30  # rows that a slice should have at least
FEWEST = 10  # rows of a class
SURELY = 1.645  # standard errors: one-sided 95 %


def find_slices(
    data: DataSet,
    index: Tensor,
    estimates: Sequence[tuple[Spec, BiasEstimate]],
    features: Mapping[str, Rows],
    *,
    most: int = SAMPLE,
    seed: int = 0,
    workers: int = 0,
    logits: Tensor | None = None,
) -> tuple[Slices, pl.DataFrame]:
    """Slices of a sample of the audited rows `index`, and a frame with their columns by sample id.

    `estimates` and `features` are the audit's, of all of `index`. `logits` (n, C) of `index` are a model's own: its errors then
    take the place of a simple model's.
    """
    started = time.monotonic()
    reason = _impossible(data, index)
    if reason:
        return Slices(of=len(index), reason=reason), pl.DataFrame()
    picked = stratified(data.y[index], most, seed=seed)
    with progress.bar("slices", 2) as advance:
        rows, x, words = slice_features(data, index[picked], workers)
        picked = picked[torch.isin(index[picked], rows)]
        advance(1)
        y, classes = data.y[rows], len(data.classes)
        reference = reference_logits(x, y, classes, seed=seed) if logits is None else logits[picked]
        if logits is None and not _tells(reference, y):
            return Slices(of=len(index), reason=f"a simple linear model on {words} does no better than chance"), pl.DataFrame()
        nuisances = [
            Nuisance(one.name, one.phrase, features[one.name][picked], e.gain[picked])
            for one, e in estimates
            if not one.content and not one.kind.probe and not one.name.startswith("column")
        ]
        part = partial(_part, data, rows, seed=seed, workers=workers)
        found = slice_rows(x, y, classes, reference, nuisances, part=part, own=logits is not None, seed=seed)
        advance(1)
    probe = f"a reader of {', '.join(found.read)}" if found.probe else f"a simple linear model on {words}"
    result = Slices(
        rows=len(rows), of=len(index), features=words,
        probe=probe if logits is None or found.probe else "the model itself",
        slices=_records(data, rows, found), doubts=_doubts(data, rows, found), doubtful=int(found.errors.wrong.sum()),
        exponent=found.exponent, seconds=time.monotonic() - started,
    )  # fmt: skip
    return result, _columns(data, rows, found)


def _tells(logits: Tensor, y: Tensor) -> bool:
    """Whether a model's class-balanced accuracy is surely above chance: the errors of one that guesses mean nothing."""
    right, counts = (logits.argmax(1) == y).double(), y.bincount().double()
    there = counts > 0
    accuracy = torch.zeros_like(counts).index_add_(0, y, right)[there] / counts[there]
    error = float((accuracy * (1 - accuracy) / counts[there]).sum().sqrt()) / len(accuracy)
    return float(accuracy.mean()) > 1 / len(accuracy) + SURELY * error


def _part(data: DataSet, rows: Tensor, logits: Tensor, *, seed: int, workers: int) -> tuple[str, Tensor] | None:
    """The part of the picture that stands out in a model's errors: in words, and its features. None: none, or no pictures."""
    if len(data.shape) != 3 or min(data.shape[1:]) < 2 * GRID:
        return None
    cells = pixel_features(data, rows, workers)[1].view(len(rows), data.shape[0], GRID, GRID)
    box = standing_out(cells, data.y[rows], logits, seed=seed)
    return None if box is None else (f"{place_of(box)} of the picture", part_features(data, rows, box, workers))


def with_slices(scores: Table, columns: pl.DataFrame) -> Table:
    """The table of scores with the columns of slices; rows outside the sample have none."""
    if not len(columns):
        return scores
    return Table(scores.frame.join(columns, on="index", how="left", maintain_order="left"), scores.made_by)


def _impossible(data: DataSet, index: Tensor) -> str:
    if not data.has_inputs:
        return "the table has no inputs"
    if data.multi_label:
        return "rows have several labels"
    if len(data.shape) not in (1, 3, 4):
        return f"inputs of shape {data.shape} are neither images, clips nor vectors"
    counts = data.y[index].bincount()
    rare = [data.classes[c] for c in ((counts > 0) & (counts < FEWEST)).nonzero().flatten().tolist()]
    return f"class {rare[0]} has fewer than {FEWEST} rows" if rare else ""


def _records(data: DataSet, rows: Tensor, found: Sliced) -> list[Slice]:
    sliced, y = found.slicing, data.y[rows]
    against = torch.tensor(sliced.conflicting)[sliced.slice]
    pooled = float(found.wrong[against].double().mean()) if bool(against.any()) else 0.0
    records, place = [], dict.fromkeys(sliced.of_class, 0)
    for s, c in enumerate(sliced.of_class):
        inside = (sliced.slice == s).nonzero().flatten()
        place[c] += 1
        wrong, n = int(found.wrong[inside].sum()), len(inside)
        name, phrase, area = found.explained[s]
        top = inside[(sliced.score[inside] if sliced.conflicting[s] else sliced.typical[inside]).argsort(descending=True)]
        shown = thumbnails(data.inputs, rows[top[:PICTURES]]) if len(data.shape) == 3 else []
        scored = zip(rows[top[:PICTURES]].tolist(), sliced.score[top[:PICTURES]].tolist(), strict=True)
        rows_shown = [
            Shown(index=i, path=data.paths[i] if data.paths else "", score=v if math.isfinite(v) else None)
            for i, v in (scored if shown else ())
        ]
        records.append(
            Slice(
                name=f"{data.classes[c]} {place[c]}", of_class=data.classes[c],
                kind="conflicting" if sliced.conflicting[s] else "aligned", seems=data.classes[sliced.said[s]],
                n=n, share=n / int((y == c).sum()), error=wrong / n, low=wilson(wrong, n)[0], high=wilson(wrong, n)[1],
                explained_by=name, phrase=phrase, explained=area, pictures=shown, rows=rows_shown,
                collect=_collect(wrong, n, pooled, found.exponent) if sliced.conflicting[s] else None,
            )
        )  # fmt: skip
    return records


def _collect(wrong: int, n: int, pooled: float, exponent: float) -> Collect | None:
    """As many rows again, and enough to have ENOUGH; None without a learning curve.

    The slice's error is drawn towards that of all conflicting rows, as if it had five more of them: its own few rows say little.
    """
    if exponent != exponent:
        return None
    error, more = (wrong + 5 * pooled) / (n + 5), max(n, ENOUGH - n)
    return Collect(rows=more, before=1 - error, after=1 - expected_error(error, n, more, exponent))


def _doubts(data: DataSet, rows: Tensor, found: Sliced) -> list[Doubt]:
    order = found.errors.order[:MOST_DOUBTS]
    against = torch.tensor(found.slicing.conflicting)[found.slicing.slice]
    shown = thumbnails(data.inputs, rows[order]) if len(data.shape) == 3 else [""] * len(order)
    return [
        Doubt(
            index=int(rows[k]), label=data.classes[int(data.y[rows[k]])], likely=data.classes[int(found.errors.likely[k])],
            confidence=float(found.errors.confidence[k]), conflicting=bool(against[k]),
            path=data.paths[int(rows[k])] if data.paths else "", picture=picture,
        )
        for k, picture in zip(order.tolist(), shown, strict=True)
    ]  # fmt: skip


def _columns(data: DataSet, rows: Tensor, found: Sliced) -> pl.DataFrame:
    """`slice` is the class that a row seems to be (a bias column); `slice_name` and `slice_kind` say which slice it is in."""
    names, seen = [], dict.fromkeys(range(len(data.classes)), 0)
    for c in found.slicing.of_class:
        seen[c] += 1
        names.append(f"{data.classes[c]} {seen[c]}")
    number = found.slicing.slice.tolist()
    kinds = ["conflicting" if c else "aligned" for c in found.slicing.conflicting]
    likely = zip(found.errors.wrong.tolist(), found.errors.likely.tolist(), strict=True)
    return pl.DataFrame(
        {
            "index": rows.numpy(),
            "slice": [data.classes[c] for c in found.slicing.seems.tolist()],
            "slice_name": [names[s] for s in number],
            "slice_kind": [kinds[s] for s in number],
            "slice_score": found.slicing.score.numpy(),
            "likely_label": pl.Series([data.classes[c] if wrong else None for wrong, c in likely], dtype=pl.String),
        }
    )


def check_most(most: int) -> int:
    """The number of rows to look for slices in; 0 looks for none."""
    if most < 0 or 0 < most < 2 * FEWEST:
        raise UserError(f"slices={most}: must be 0 (none) or at least {2 * FEWEST} rows")
    return most
