"""Repaired data for other tools: a CSV, or a class folder of the kept images."""

import shutil
import sys
from pathlib import Path

import polars as pl
import torch
from PIL import Image

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.files import defused, replacing, safe_name
from unskew.data.dataset import DataSet
from unskew.data.texts import contents
from unskew.records import Table


def write_csv(table: Table, out: Path) -> None:
    """The table as a CSV, a hundred thousand rows at a time."""
    with replacing(out) as part, open(part, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        for number, rows in enumerate(table.frame.iter_slices(100_000)):
            file.write(csv_text(rows, header=number == 0))
        if not len(table):
            file.write(csv_text(table.frame))


def csv_text(frame: pl.DataFrame, *, header: bool = True) -> str:
    """A table as CSV that no spreadsheet runs: text that begins like a formula is preceded by an apostrophe."""
    text = [name for name, kind in frame.schema.items() if kind == pl.String]
    safe = frame.with_columns(pl.col(name).map_elements(defused, return_dtype=pl.String) for name in text)
    return safe.rename({name: defused(name) for name in frame.columns}).write_csv(include_header=header)


def check_folder(data: DataSet) -> None:
    """Refuse data that cannot be written as class folders, before doing any work."""
    if data.multi_label:
        raise UserError(f"{data.name}: rows with several labels do not fit into class folders; use --as csv")
    if len(data.shape) != 3 or (not data.paths and data.inputs.rows(torch.zeros(1, dtype=torch.long))[0].is_floating_point()):
        raise UserError(f"{data.name}: its rows are not images; use --as csv")
    names = [safe_name(c).casefold() for c in data.classes]  # some file systems do not tell Cat from cat
    twice = [c for c, n in zip(data.classes, names, strict=True) if names.count(n) > 1]
    if twice:
        raise UserError(f"class {twice[0]!r} does not make a unique folder name; rename it, or use --as csv")


def write_images(data: DataSet, table: Table, out: Path, copy: bool) -> None:
    """Write split/class/name for every kept row: a link to the source's file, a copy, or a PNG if there is no file."""
    kept = table.index[table.column("weight") > 0].tolist()
    with progress.bar("writing images", len(kept)) as advance:
        for row in kept:
            place = out / safe_name(data.splits[int(data.split[row])]) / safe_name(data.classes[int(data.y[row])])
            place.mkdir(parents=True, exist_ok=True)
            _write(data, row, place, copy)
            advance()


def _write(data: DataSet, row: int, place: Path, copy: bool) -> None:
    if data.paths:
        content = contents(data.paths, [row])[0]
        source = Path(data.paths[row]).absolute()
        target = place / safe_name(f"{row:06d}-{source.name}")  # two folders may hold files of the same name
        if not isinstance(content, str):  # from a shard or a bucket: there is no file to link to
            target.write_bytes(content.read())
        elif copy:
            shutil.copyfile(source, target)
        else:
            _link(source, target)
        return
    pixels = data.inputs.rows(torch.tensor([row]))[0][0]
    array = pixels.permute(1, 2, 0).numpy()
    Image.fromarray(array if array.shape[2] == 3 else array[:, :, 0]).save(place / f"{row:06d}.png", compress_level=1)


def _link(source: Path, target: Path) -> None:
    """Link, or copy where links are not allowed (Windows without the privilege)."""
    try:
        target.symlink_to(source)
    except (OSError, NotImplementedError) as error:
        if sys.platform != "win32":
            raise
        progress.say(f"cannot create links here ({error}); copying instead")
        shutil.copyfile(source, target)
