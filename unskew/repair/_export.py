"""Repaired data for tools that know nothing of unskew: a CSV, or a class folder of the kept images."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from PIL import Image

from unskew import progress
from unskew.data._dataset import DataSet
from unskew.errors import UserError
from unskew.files import replacing
from unskew.records import Table


def write_csv(table: Table, out: Path) -> None:
    with replacing(out) as part:
        table.frame.write_csv(part)


def check_folder(data: DataSet) -> None:
    """Refuse rows that have no place in a class folder, before any work is done."""
    if data.multi_label:
        raise UserError(f"{data.name}: rows with several labels have no one class folder; use --as csv")
    if len(data.shape) != 3 or (not data.paths and data.inputs.rows(torch.zeros(1, dtype=torch.long))[0].is_floating_point()):
        raise UserError(f"{data.name}: its rows are no images; use --as csv")
    names = [_safe(c) for c in data.classes]
    twice = [c for c, n in zip(data.classes, names, strict=True) if names.count(n) > 1 or n in ("", ".", "..")]
    if twice:
        raise UserError(f"class {twice[0]!r} cannot be the name of a folder of its own; rename it, or use --as csv")


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of `out` if the block ends well, and vanishes if not."""
    out = out.absolute()
    for stale in out.parent.glob(f".{out.name}.*.part"):  # of a process that was killed
        shutil.rmtree(stale, ignore_errors=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        yield part
        if out.exists():
            shutil.rmtree(out)
        os.replace(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_images(data: DataSet, table: Table, out: Path, copy: bool) -> None:
    """split/class/name for every kept row: links to the source's files, copies of them, or PNGs where there are no files."""
    kept = table.index[table.column("weight") > 0].tolist()
    with progress.bar("writing images", len(kept)) as advance:
        for row in kept:
            place = out / data.splits[int(data.split[row])] / _safe(data.classes[int(data.y[row])])
            place.mkdir(parents=True, exist_ok=True)
            _write(data, row, place, copy)
            advance()


def _write(data: DataSet, row: int, place: Path, copy: bool) -> None:
    if data.paths:
        source = Path(data.paths[row]).absolute()
        target = place / f"{row:06d}-{source.name}"  # two folders may hold files of one name
        if copy:
            shutil.copyfile(source, target)
        else:
            target.symlink_to(source)
        return
    pixels = data.inputs.rows(torch.tensor([row]))[0][0]
    array = pixels.permute(1, 2, 0).numpy()
    Image.fromarray(array if array.shape[2] == 3 else array[:, :, 0]).save(place / f"{row:06d}.png", compress_level=1)


def _safe(name: str) -> str:
    return name.replace("/", "_").replace("\\", "_")
