"""A CSV, JSONL or Parquet table; paths are relative to the table's folder. Without a path column it holds labels and attributes."""

from pathlib import Path

import polars as pl

from unskew.core.errors import UserError
from unskew.core.tables import read_csv, read_ndjson, read_parquet
from unskew.data.dataset import DataSet, NoInputs
from unskew.data.readers import columns as _columns
from unskew.data.readers.clips import clip_set
from unskew.data.readers.files import is_folder
from unskew.data.readers.images import as_built, below, image_set
from unskew.data.readers.walking import measured
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle
from unskew.data.texts import Texts

PATH_NAMES = ("file_name", "img_filename", "filename", "path")


def from_table(path: Path, cfg: DataConfig) -> DataSet:
    """The rows of a table file."""
    frame = read_frame(path)
    if not len(frame):
        raise UserError(f"{path}: the table has no rows")
    if not any(name in frame.columns for name in PATH_NAMES):
        return from_labels(frame, path.name, str(path), str(path), cfg)
    return from_rows_of_files(frame, path.parent, str(path), str(path), as_built(path.parent, cfg))


def from_labels(frame: pl.DataFrame, name: str, where: str, source: str, cfg: DataConfig) -> DataSet:
    """Rows without inputs: labels, bias columns and other columns."""
    y, classes = _columns.labels(frame, cfg, where)
    bias, values = _columns.biases(frame, cfg.bias, where)
    split, splits = _columns.splits(frame, cfg, where)
    settled = settle(y, split, cfg, where, columns=frame)
    why = f"{where}: no path column; it needs one of {', '.join(PATH_NAMES)}, and has {', '.join(frame.columns)}"
    used = {*cfg.label, cfg.split}  # a label under another name must not pass for a nuisance
    return DataSet(
        name=name, inputs=NoInputs(f"{why}; without inputs a table can only be audited"), y=y, classes=classes,
        splits=splits, bias=bias, bias_names=cfg.bias, bias_values=values, source=source,
        columns=frame.select([n for n in frame.columns if n not in used]), **settled.fields(),
    )  # fmt: skip


def from_rows_of_files(frame: pl.DataFrame, root: Path, where: str, source: str, cfg: DataConfig) -> DataSet:
    """Rows whose inputs are files, named in a path column relative to `root`."""
    name = next(n for n in PATH_NAMES if n in frame.columns)
    y, classes = _columns.labels(frame, cfg, where)
    bias, values = _columns.biases(frame, cfg.bias, where)
    split, splits = _columns.splits(frame, cfg, where)
    files = [str(p) if p is not None else "" for p in frame[name].to_list()]
    found = measured(below(root, Texts.of(files)))
    absent = [
        k for k in (found.size < 0).nonzero()[0].tolist() if not files[k] or not (cfg.frames and is_folder(root / files[k]))
    ]
    if absent:
        raise UserError(
            f"{where}: {len(absent)} of {len(files)} paths do not exist; the first is {files[absent[0]][:200]!r} in row "
            f"{absent[0] + 1}; paths are relative to {'the folder of the table' if source else 'the current folder'}"
        )
    if cfg.frames:
        return clip_set(
            root, files, y, classes, split, splits, cfg, bias=bias, bias_values=values, columns=frame, source=source
        )  # fmt: skip
    return image_set(
        root, files, y, classes, split, splits, cfg, bias=bias, bias_values=values, columns=frame, source=source, found=found
    )  # fmt: skip


def read_frame(path: Path) -> pl.DataFrame:
    ending = path.suffix.lower()
    if ending == ".parquet":
        return read_parquet(path)[0]
    return read_ndjson(path) if ending in (".jsonl", ".ndjson") else read_csv(path, "\t" if ending == ".tsv" else ",")
