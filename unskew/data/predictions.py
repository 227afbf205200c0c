"""A table of predictions made elsewhere, matched with the rows of a source: by sample id or by path.

Columns: `index` or `id` (sample ids), or a path column (`path`, `file_name`, ...), of which any ending will do that tells the files
apart; and the probabilities: one column per class, named like it (or `p_CLASS`), or one list column `probabilities` or `logits` in
the order of the source's classes.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.readers.table import PATH_NAMES, read_frame

IDS = ("index", "id")
LISTS = ("probabilities", "probs", "logits")
SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
OFF = 0.01  # by which probabilities of a row may miss 1


def is_predictions(path: object) -> bool:
    """Whether this names a table of predictions and not a run's folder."""
    return isinstance(path, (str, Path)) and Path(path).suffix.lower() in SUFFIXES


def read_predictions(path: Path, data: DataSet) -> tuple[Tensor, Tensor]:
    """(ids, logits) of the predicted rows, by id; log probabilities serve as logits."""
    if not path.is_file():
        raise UserError(f"no table {str(path)!r}")
    frame = read_frame(path)
    if not len(frame):
        raise UserError(f"{path}: the table has no rows")
    index = _ids(frame, data, path)
    if len(torch.unique(index)) < len(index):
        twice = int((index.bincount() > 1).nonzero()[0])
        raise UserError(f"{path}: sample {twice} is predicted more than once; each must appear once")
    order = index.argsort()
    return index[order], _logits(frame, data, path)[order]


def _ids(frame: pl.DataFrame, data: DataSet, path: Path) -> Tensor:
    name = next((n for n in IDS if n in frame.columns and frame[n].dtype.is_integer()), "")
    if name:
        index = torch.from_numpy(frame[name].to_numpy().astype("int64", copy=True))
        bad = (index < 0) | (index >= len(data))
        if bool(bad.any()):
            raise UserError(f"{path}: sample id {int(index[bad][0])}, but {data.name} has rows 0 to {len(data) - 1}")
        return index
    name = next((n for n in PATH_NAMES if n in frame.columns), "")
    if not name or not data.paths:
        wanted = f"a column {' or '.join(IDS)}" + (f", or one of {', '.join(PATH_NAMES)}" if data.paths else "")
        raise UserError(f"{path}: cannot be matched with {data.name}; it needs {wanted}, and has {', '.join(frame.columns)}")
    known = _endings(data.paths)
    found = [_row_of(str(p), known) for p in frame[name].to_list()]
    lost = [k for k, row in enumerate(found) if row < 0]
    if lost:
        first = frame[name][lost[0]]
        why = "fits several files" if _row_of(str(first), known) == -2 else f"is not a file of {data.name}"
        raise UserError(f"{path}: {len(lost)} of {len(frame)} paths cannot be matched; the first, {first!r}, {why}")
    return torch.tensor(found)


def _endings(paths: Sequence[str]) -> dict[tuple[str, ...], int]:
    """Every ending of every path, in parts, to its row; -2 if several rows have it."""
    known: dict[tuple[str, ...], int] = {}
    for row, text in enumerate(paths):
        parts = PurePosixPath(text.replace("\\", "/")).parts
        for k in range(len(parts)):
            known[parts[k:]] = -2 if parts[k:] in known else row
    return known


def _row_of(text: str, known: dict[tuple[str, ...], int]) -> int:
    """The row with the longest common ending; -1 without one, -2 if several fit."""
    parts = PurePosixPath(text.replace("\\", "/")).parts
    return next((known[parts[k:]] for k in range(len(parts)) if parts[k:] in known), -1)


def _logits(frame: pl.DataFrame, data: DataSet, path: Path) -> Tensor:
    name, classes = next((n for n in LISTS if n in frame.columns), ""), data.classes
    if name and isinstance(frame[name].dtype, (pl.List, pl.Array)):
        rows = frame[name].to_list()
        if any(row is None or len(row) != len(classes) for row in rows):
            raise UserError(
                f"{path}: column {name!r} must have {len(classes)} numbers in every row, one per class of {data.name}"
            )
        values = torch.tensor(rows, dtype=torch.float64)
    else:
        name = "probabilities"
        columns = [next((n for n in (c, f"p_{c}", f"prob_{c}") if n in frame.columns), "") for c in classes]
        if not all(columns):
            missing = classes[columns.index("")]
            raise UserError(
                f"{path}: no probability of class {missing!r}; it needs a column per class of {data.name} ({', '.join(classes[:6])}), "
                f"or a list column {', '.join(LISTS)}"
            )
        values = torch.from_numpy(frame.select(columns).cast(pl.Float64).to_numpy().copy())
    if not bool(values.isfinite().all()):
        raise UserError(f"{path}: row {int((~values.isfinite()).any(1).nonzero()[0]) + 1} has a prediction that is not a number")
    if name == "logits":
        return values.float()
    if bool((values < 0).any() | (values > 1).any()) or (not data.multi_label and bool(((values.sum(1) - 1).abs() > OFF).any())):
        raise UserError(
            f"{path}: probabilities must lie in [0, 1] and sum to 1 in every row; name the column logits if they are logits"
        )
    safe = values.clamp(1e-12, 1 - 1e-12)
    return (safe.log() - (1 - safe).log() if data.multi_label else safe.log()).float()
