"""A folder with one folder per class, optionally inside `train/ val/ test/`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from unskew.core.errors import UserError
from unskew.data.dataset import SPLITS, DataSet
from unskew.data.readers.clips import clip_set, clips_below
from unskew.data.readers.images import image_set
from unskew.data.readers.table import from_table
from unskew.data.readers.walking import Found, images_in, together
from unskew.data.reading import DataConfig
from unskew.data.texts import Texts

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
SPLIT_FOLDERS = {
    "train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2,
}  # fmt: skip


def is_result(path: Path) -> bool:
    """Whether unskew wrote this folder: a run or an audit, not data."""
    return (path / "audit.json").is_file() or ((path / "config.json").is_file() and (path / "log.jsonl").is_file())


def from_folder(root: Path, cfg: DataConfig) -> DataSet:
    for name in METADATA:
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
    is_split = [c.name.lower() in SPLIT_FOLDERS for c in children]
    if any(is_split) and not all(is_split):
        odd = children[is_split.index(False)].name
        raise UserError(f"{root}: {odd!r} is not a split folder like its neighbours; rename it to train, val or test, or move it")
    parts = [(SPLIT_FOLDERS[c.name.lower()], c) for c in children] if all(is_split) else [(0, root)]
    folders: list[Path] = []
    codes: list[int] = []  # of the folders' splits
    for code, part in parts:
        inside = sorted(p for p in part.iterdir() if p.is_dir() and not p.name.startswith(".") and not is_result(p))
        if not inside:
            raise UserError(f"{part}: no class folders in it")
        folders += inside
        codes += [code] * len(inside)
    listed = _clips(folders, root) if cfg.frames else images_in(folders, root)
    for folder, files in zip(folders, listed, strict=True):
        if not len(files.paths):
            if not cfg.frames and clips_below(folder):
                raise UserError(f"{folder}: holds videos, not images; set the frames to take of each, such as data.frames=8")
            what = "clips" if cfg.frames else "images"
            raise UserError(f"{folder}: class folder without {what}; fill it or remove it")
    classes = tuple(sorted({folder.name for folder in folders}))
    if len(classes) < 2:
        raise UserError(f"{root}: only one class ({classes[0]}); a classifier needs at least two")
    many = torch.tensor([len(files.paths) for files in listed])
    y = torch.tensor([classes.index(folder.name) for folder in folders]).repeat_interleave(many)
    split = torch.tensor(codes).repeat_interleave(many)
    found = together(listed)
    if cfg.frames:
        return clip_set(root, found.paths, y, classes, split, SPLITS, cfg)
    return image_set(root, found.paths, y, classes, split, SPLITS, cfg, found=found)


def _clips(folders: Sequence[Path], root: Path) -> list[Found]:
    """The clips below each folder; a clip may be a folder of frames, so that sizes and times are not those of its content."""
    paths = [Texts.of(str(p.relative_to(root)) for p in clips_below(folder)) for folder in folders]
    return [Found(names, np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)) for names in paths]
