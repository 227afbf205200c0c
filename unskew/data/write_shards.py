"""Any source of images as shards, Parquet in the layout of Hugging Face or tar in that of webdataset, written row by row.

Pictures are copied as they are stored, or written as PNG if they are arrays. Rows come in a random order, the same every time: training
mixes the rows of some blocks only, so that a shard should not hold one class.
"""

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.files import safe_name
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.data.readers.parquet import library
from unskew.data.readers.table import PATH_NAMES
from unskew.data.texts import contents

SHARD = 2**28  # bytes of pictures in a shard
GROUP = 100  # rows of a row group, and held at a time
_ENDING = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "PPM": "ppm"}


def write_shards(data: DataSet, out: Path, how: str) -> None:
    """Shards SPLIT-00000.parquet or .tar of every split in `out`."""
    if len(data.shape) != 3 or not data.has_inputs or (not data.paths and _sample(data).is_floating_point()):
        raise UserError(f"{data.name}: its rows are not images; write it as npz")
    if how == "parquet":
        library()  # raises before anything is written
    known = ~torch.isin(torch.arange(len(data)), torch.tensor([k for k, _ in data.unreadable], dtype=torch.long))
    with progress.bar("writing shards", int(known.sum())) as advance:
        for split in data.splits:
            if not data.has(split) or split.partition("_")[0] not in ("train", "val", "test"):
                continue
            rows = data.rows(split)
            rows = rows[known[rows]]
            rows = rows[torch.randperm(len(rows), generator=stream(0, "shards", split))]
            for number, shard in enumerate(_shards(data, rows)):
                path = out / f"{safe_name(split)}-{number:05d}.{how}"
                (_parquet if how == "parquet" else _tar)(data, split, path, shard, advance)


Row = tuple[int, bytes]  # sample id, encoded picture


def _sample(data: DataSet) -> Tensor:
    return data.inputs.rows(torch.zeros(1, dtype=torch.long))[0]


def _shards(data: DataSet, rows: Tensor) -> Iterator[Iterator[list[Row]]]:
    """The rows a shard at a time, each in pieces of a row group; a piece is read when it is asked for."""
    pieces = (_encoded(data, some.tolist()) for some in torch.split(rows, GROUP))
    waiting = next(pieces, None)

    def one() -> Iterator[list[Row]]:
        nonlocal waiting
        size = 0
        while waiting is not None and size < SHARD:
            size += sum(len(raw) for _, raw in waiting)
            yield waiting
            waiting = next(pieces, None)

    while waiting is not None:
        yield one()


def _encoded(data: DataSet, rows: Sequence[int]) -> list[Row]:
    hidden = data.reading is not None and bool(data.reading.hide)
    if data.paths and not hidden:
        found = contents(data.paths, rows)
        raws = [Path(content).read_bytes() if isinstance(content, str) else content.read() for content in found]
        return list(zip(rows, raws, strict=True))
    x, fine = data.inputs.rows(torch.tensor(rows))
    return [(row, _png(pixels)) for row, pixels, ok in zip(rows, x, fine.tolist(), strict=True) if ok]


def _png(pixels: Tensor) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.squeeze(pixels.permute(1, 2, 0).numpy())).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _ending(raw: bytes) -> str:
    with Image.open(io.BytesIO(raw)) as image:
        return _ENDING.get(image.format or "", "img.png")


def _columns(data: DataSet, split: str, rows: Sequence[int]) -> dict[str, list[Any]]:
    """Label, split, bias columns and the source's other columns, by name."""
    if data.multi_label:
        labels: list[Any] = [[c for c, there in zip(data.classes, row, strict=True) if there] for row in data.y[rows].tolist()]
    else:
        labels = [data.classes[c] for c in data.y[rows].tolist()]
    found: dict[str, list[Any]] = {"label": labels, "split": [split] * len(rows)}
    for k, name in enumerate(data.bias_names):
        found[name] = [data.bias_values[k][c] if c >= 0 else None for c in data.bias[rows, k].tolist()]
    taken = {*found, *PATH_NAMES, *(() if data.reading is None else data.reading.label), "image"}
    for name in data.columns.columns:
        if name not in taken and not data.columns[name].dtype.is_nested():
            found[name] = data.columns[name][list(rows)].to_list()
    return found


def _parquet(data: DataSet, split: str, path: Path, pieces: Iterator[list[Row]], advance: progress.Advance) -> None:
    import pyarrow as pa

    features: dict[str, Any] = {"image": {"_type": "Image"}}
    if not data.multi_label:
        features["label"] = {"names": list(data.classes), "_type": "ClassLabel"}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    writer = None
    try:
        for piece in pieces:
            rows = [row for row, _ in piece]
            pictures = [{"bytes": raw, "path": f"{row:08d}.{_ending(raw)}"} for row, raw in piece]
            columns = _columns(data, split, rows)
            if not data.multi_label:
                columns["label"] = data.y[rows].tolist()
            frame = pl.DataFrame(columns, schema_overrides=_kinds(data, columns))
            table = frame.to_arrow().add_column(0, "image", pa.array(pictures, kind)).replace_schema_metadata(about)
            writer = library().ParquetWriter(path, table.schema) if writer is None else writer
            writer.write_table(table, row_group_size=GROUP)
            advance(len(rows))
    finally:
        if writer is not None:
            writer.close()


def _kinds(data: DataSet, columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Types of the columns, the same in every row group: one may have only empty values in it."""
    own = {name: data.columns.schema[name] for name in columns if name in data.columns.columns}
    fixed: dict[str, Any] = {"split": pl.String, "label": pl.List(pl.String) if data.multi_label else pl.Int64}
    return own | dict.fromkeys(data.bias_names, pl.String) | fixed


def _tar(data: DataSet, split: str, path: Path, pieces: Iterator[list[Row]], advance: progress.Advance) -> None:
    with tarfile.open(path, "w") as archive:
        for piece in pieces:
            rows = [row for row, _ in piece]
            columns = _columns(data, split, rows)
            for k, (row, raw) in enumerate(piece):
                values = {name: values[k] for name, values in columns.items()}
                _member(archive, f"{row:08d}.{_ending(raw)}", raw)
                _member(archive, f"{row:08d}.json", json.dumps(values, default=str).encode())
            advance(len(rows))


def _member(archive: tarfile.TarFile, name: str, raw: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size = len(raw)
    archive.addfile(about, io.BytesIO(raw))
