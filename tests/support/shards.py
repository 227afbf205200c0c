"""Shards written without unskew: tars by tarfile, Parquet by pyarrow, as webdataset and Hugging Face lay them out."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def encoded(seed: int, side: int = 8, kind: str = "PNG") -> bytes:
    """A picture of noise."""
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)).save(out, kind)
    return out.getvalue()


def pixels(raw: bytes) -> np.ndarray:
    """(3, H, W) as Pillow decodes it."""
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB")).transpose(2, 0, 1)


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, raw in members:
            about = tarfile.TarInfo(name)
            about.size = len(raw)
            archive.addfile(about, io.BytesIO(raw))
    return path


def tar_rows(seeds, classes: int = 2) -> list[tuple[str, bytes]]:
    """A picture, its class and its columns for each seed."""
    rows = []
    for k in seeds:
        site = {"site": "xyz"[k % 3], "deep": {"a": [k]}}
        rows += [
            (f"{k:06d}.png", encoded(k)),
            (f"{k:06d}.cls", b"%d" % (k % classes)),
            (f"{k:06d}.json", json.dumps(site).encode()),
        ]
    return rows


def write_parquet(
    path: Path, seeds, group: int = 5, layout: str = "struct", names: tuple[str, ...] = ("no", "yes"), **more
) -> Path:
    """Pictures as a struct of bytes and path, or as plain bytes; labels are codes with names in the schema's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    raws = [encoded(k) for k in seeds]
    pictures = [{"bytes": raw, "path": f"{k}.png"} for k, raw in zip(seeds, raws, strict=True)] if layout == "struct" else raws
    table = pa.table({"image": pictures, "label": [k % 2 for k in seeds], "site": ["xyz"[k % 3] for k in seeds], **more})
    features = {"image": {"_type": "Image"}, "label": {"names": list(names), "_type": "ClassLabel"}}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(about), path, row_group_size=group)
    return path
