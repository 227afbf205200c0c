"""A folder with one folder per class, optionally inside `train/ val/ test/`."""

from pathlib import Path

import torch

from unskew.core.errors import UserError
from unskew.data.dataset import SPLITS, DataSet
from unskew.data.readers.clips import clip_set, clips_below
from unskew.data.readers.images import image_set
from unskew.data.readers.listing import images_below
from unskew.data.readers.table import from_table
from unskew.data.reading import DataConfig

_SPLIT_FOLDERS = {
    "train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2,
}  # fmt: skip


def is_result(path: Path) -> bool:
    """Whether unskew wrote this folder: a run or an audit, not data."""
    return (path / "audit.json").is_file() or ((path / "config.json").is_file() and (path / "log.jsonl").is_file())


def from_folder(root: Path, cfg: DataConfig) -> DataSet:
    for name in ("metadata.csv", "metadata.jsonl", "metadata.parquet"):
        if (root / name).is_file():  # the columns of an image folder, as Hugging Face lays them out
            return from_table(root / name, cfg)
    for role, name in (("bias", cfg.bias[0] if cfg.bias else ""), ("group", cfg.group)):
        if name:
            raise UserError(
                f"{root}: no {role} column {name!r}: class folders have no columns; add a metadata.csv with file_name, "
                f"label and the {role} column"
            )
    children = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".") and not is_result(p))
    if not children:
        raise UserError(f"{root}: no folders in it; a source has one folder of images per class")
    is_split = [c.name.lower() in _SPLIT_FOLDERS for c in children]
    if any(is_split) and not all(is_split):
        odd = children[is_split.index(False)].name
        raise UserError(f"{root}: {odd!r} is not a split folder like its neighbours; rename it to train, val or test, or move it")
    parts = [(_SPLIT_FOLDERS[c.name.lower()], c) for c in children] if all(is_split) else [(0, root)]
    rows: list[tuple[str, str, int]] = []  # path, class, split
    for code, part in parts:
        folders = sorted(p for p in part.iterdir() if p.is_dir() and not p.name.startswith(".") and not is_result(p))
        if not folders:
            raise UserError(f"{part}: no class folders in it")
        for folder in folders:
            files = clips_below(folder) if cfg.frames else images_below(folder)
            if not files:
                if not cfg.frames and clips_below(folder):
                    raise UserError(f"{folder}: holds videos, not images; set the frames to take of each, such as data.frames=8")
                what = "clips" if cfg.frames else "images"
                raise UserError(f"{folder}: class folder without {what}; fill it or remove it")
            rows += [(str(p.relative_to(root)), folder.name, code) for p in files]
    classes = tuple(sorted({name for _, name, _ in rows}))
    if len(classes) < 2:
        raise UserError(f"{root}: only one class ({classes[0]}); a classifier needs at least two")
    place = {name: k for k, name in enumerate(classes)}
    y = torch.tensor([place[name] for _, name, _ in rows])
    split = torch.tensor([code for _, _, code in rows])
    build = clip_set if cfg.frames else image_set
    return build(root, [p for p, _, _ in rows], y, classes, split, SPLITS, cfg)
