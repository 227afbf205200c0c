"""Sources in a bucket, s3:// or gs://: shards, class folders, a folder with metadata.csv, or a saved Hugging Face data set.

Pictures are fetched when they are needed, those of a batch together; only a saved Hugging Face data set is copied, into the cache,
where it is mapped into memory as on any disk.
"""

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import torch

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.fetch import cache
from unskew.core.files import replacing
from unskew.data.dataset import SPLITS, DataSet
from unskew.data.manifest import facts_of
from unskew.data.readers import columns as _columns
from unskew.data.readers.files import check_names
from unskew.data.readers.folder import METADATA, SPLIT_FOLDERS
from unskew.data.readers.hugging_face import from_saved
from unskew.data.readers.images import Labels, stored_set
from unskew.data.readers.listing import EXTENSIONS
from unskew.data.readers.shards import COMPRESSED, ENDINGS, shard_set
from unskew.data.readers.stores import Item, items_below, opened, read_all
from unskew.data.readers.table import PATH_NAMES, read_frame
from unskew.data.reading import DataConfig
from unskew.data.texts import Content, Texts

_PIECE = 2**24  # bytes copied at a time


class Objects(Texts):
    """Pictures that are objects of a bucket each: texts are their addresses."""

    def contents(self, rows: Sequence[int]) -> Sequence[Content]:
        return [io.BytesIO(content) for content in read_all([self[k] for k in rows])] if rows else []


def from_remote(address: str, cfg: DataConfig) -> DataSet:
    """The rows of whatever lies at an address."""
    items = items_below(address)
    before = address.rstrip("/") + "/"
    if len(items) == 1 and items[0].address == address.rstrip("/"):
        before = address.rpartition("/")[0] + "/"
    names = [item.address.removeprefix(before) for item in items]
    if "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= set(names):
        return from_saved(_copied(address, items, names), cfg, source=address)
    table = next((items[names.index(name)] for name in METADATA if name in names), None)
    shown = [k for k, name in enumerate(names) if not any(part.startswith(".") for part in name.split("/"))]
    shards = [items[k] for k in shown if names[k].lower().endswith((*ENDINGS, *COMPRESSED)) and items[k] is not table]
    pictures = [k for k in shown if os.path.splitext(names[k])[1].lower() in EXTENSIONS]
    if shards and not pictures:
        return shard_set(address, before, shards, cfg)
    if cfg.frames:
        raise UserError(f"{address}: data.frames={cfg.frames}: clips are read from this machine only; copy them")
    if not pictures:
        raise UserError(f"{address}: neither shards ({', '.join(ENDINGS)}) nor pictures below it, but {names[0]!r}")
    listed: Sequence[Item] = [items[k] for k in pictures]
    labels, columns, listed = _by_table(table, before, listed, cfg) if table else _by_folder(address, before, listed, cfg)
    paths = Texts.of(item.address.removeprefix(before) for item in listed)
    check_names(labels.classes, address)
    stored = Objects(paths.raw, paths.starts, before)
    size, mtime = (np.array([getattr(item, name) for item in listed], dtype=np.int64) for name in ("size", "mtime"))
    facts = facts_of(address, paths, stored, size, mtime, labels.frame())
    return stored_set(_name(address), address, stored, paths, facts, labels, cfg, columns=columns)


def _name(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def _by_folder(
    address: str, before: str, items: Sequence[Item], cfg: DataConfig
) -> tuple[Labels, pl.DataFrame | None, Sequence[Item]]:
    """Class folders, optionally inside train/ val/ test/, as on a disk."""
    for role, name in (("bias", cfg.bias[0] if cfg.bias else ""), ("group", cfg.group)):
        if name:
            raise UserError(f"{address}: no {role} column {name!r}: class folders have no columns; add a metadata.csv")
    parts = [item.address.removeprefix(before).split("/") for item in items]
    tops = {part[0] for part in parts if len(part) > 1}
    splits = {top for top in tops if top.lower() in SPLIT_FOLDERS}
    if splits and splits != tops:
        raise UserError(f"{address}: {min(tops - splits)!r} is not a split folder like its neighbours; rename it or move it")
    deep = 1 if splits else 0
    kept = [k for k, part in enumerate(parts) if len(part) > deep + 1]
    classes = tuple(sorted({parts[k][deep] for k in kept}))
    if len(classes) < 2:
        raise UserError(f"{address}: only {len(classes)} class folders with pictures; a classifier needs at least two")
    place = {name: k for k, name in enumerate(classes)}
    kept.sort(key=lambda k: parts[k])
    labels = Labels(
        y=torch.tensor([place[parts[k][deep]] for k in kept]), classes=classes, splits=SPLITS,
        split=torch.tensor([SPLIT_FOLDERS[parts[k][0].lower()] if splits else 0 for k in kept]),
        bias=torch.zeros(len(kept), 0, dtype=torch.long),
    )  # fmt: skip
    return labels, None, [items[k] for k in kept]


def _by_table(
    table: Item, before: str, items: Sequence[Item], cfg: DataConfig
) -> tuple[Labels, pl.DataFrame | None, Sequence[Item]]:
    """The rows of a metadata file beside the pictures."""
    where = table.address
    frame = read_frame(_copied(where, [table], [_name(where)]) / _name(where))
    name = next((n for n in PATH_NAMES if n in frame.columns), "")
    if not name:
        raise UserError(f"{where}: no path column; it needs one of {', '.join(PATH_NAMES)}, and has {', '.join(frame.columns)}")
    known = {item.address.removeprefix(before): item for item in items}
    files = [str(path).replace("\\", "/").removeprefix("./") for path in frame[name].to_list()]
    absent = [k for k, file in enumerate(files) if file not in known]
    if absent:
        raise UserError(
            f"{where}: {len(absent)} of {len(files)} paths do not exist; the first is {files[absent[0]][:200]!r} in row {absent[0] + 1}"
        )
    y, classes = _columns.labels(frame, cfg, where)
    bias, values = _columns.biases(frame, cfg.bias, where)
    split, splits = _columns.splits(frame, cfg, where)
    labels = Labels(
        y=y, classes=classes, split=split, splits=splits, bias=bias, bias_names=tuple(cfg.bias), bias_values=values
    )  # fmt: skip
    return labels, frame, [known[file] for file in files]


def _copied(address: str, items: Sequence[Item], names: Sequence[str]) -> Path:
    """A folder of the cache with these objects; one whose size, time or tag has changed is copied again."""
    home = cache() / "remote" / hashlib.sha256(address.encode()).hexdigest()[:32]
    with progress.bar("copying", sum(item.size for item in items)) as advance:
        for item, name in zip(items, names, strict=True):
            if ".." in name.split("/") or name.startswith("/") or "\\" in name:
                raise UserError(f"{address}: the name {name[:100]!r} leads elsewhere; rename the object")
            tag = hashlib.sha256(repr((item.size, item.mtime, item.tag)).encode()).hexdigest()[:16]
            path, stamp = home / "files" / name, home / "stamps" / f"{name}.{tag}"
            if not (path.is_file() and stamp.is_file()):
                with opened(item.address) as file, replacing(path) as part, open(part, "wb") as out:
                    while piece := file.read(_PIECE):
                        out.write(piece)
                        advance(len(piece))
                with replacing(stamp) as part:
                    part.touch()
    return home / "files"
