"""A data set on disk: arrays (fast, exact), images in class folders (for any tool, and to look at), or shards (of any size)."""

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.files import safe_name, whole_folder, write_json
from unskew.core.workplace import alone
from unskew.data.dataset import DataSet, Memory
from unskew.data.export import csv_text
from unskew.data.readers.arrays import write_arrays
from unskew.data.write_shards import write_shards


def write(data: DataSet, out: Path, how: str) -> Path:
    """`how` is npz, images, shards (Parquet) or tar. The folder appears whole or not at all."""
    if how not in ("npz", "images", "shards", "tar"):
        raise UserError(f"--as {how}: must be npz, images, shards or tar")
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists and is not empty; choose another --out")
    with alone(out, "writer"), whole_folder(out) as part:
        if how == "npz":
            write_arrays(data, part / "data.npz")
        elif how in ("shards", "tar"):
            write_shards(data, part, "parquet" if how == "shards" else "tar")
        else:
            write_images(data, part)
        write_json(part / "card.json", data.describe())
    return out


def write_images(data: DataSet, out: Path) -> None:
    """PNGs as split/class/id.png, and metadata.csv with label, split and bias columns."""
    if not isinstance(data.inputs, Memory) or data.inputs.x.dtype.is_floating_point or data.inputs.x.ndim != 4:
        raise UserError(f"{data.name}: its rows are not images; write it as npz")
    if data.multi_label:
        raise UserError(f"{data.name}: rows with several labels do not fit into class folders; write it as npz")
    x = data.inputs.x.permute(0, 2, 3, 1).numpy()
    # Two names that become one get their class's number; metadata.csv keeps the original names.
    safe = [safe_name(c) for c in data.classes]
    folders = [f"{s}-{k}" if safe.count(s) > 1 else s for k, s in enumerate(safe)]
    names = []
    with progress.bar("writing images", len(data)) as advance:
        for k in range(len(data)):
            place = Path(safe_name(data.splits[int(data.split[k])])) / folders[int(data.y[k])] / f"{k:06d}.png"
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.squeeze(x[k])).save(out / place, compress_level=1)
            names.append(str(place))
            advance()
    frame = pl.DataFrame({"file_name": names, "label": [data.classes[c] for c in data.y.tolist()]})
    frame = frame.with_columns(pl.Series("split", [data.splits[c] for c in data.split.tolist()]))
    for k, name in enumerate(data.bias_names):
        values = [data.bias_values[k][c] if c >= 0 else None for c in data.bias[:, k].tolist()]
        frame = frame.with_columns(pl.Series(name, values))
    (out / "metadata.csv").write_text(csv_text(frame), encoding="utf-8", newline="")
