"""A folder with a folder per class, and `train/ val/ test/` above them if there."""

from pathlib import Path

import torch

from unskew.core.errors import UserError
from unskew.data.dataset import SPLITS, DataSet, carve_splits
from unskew.data.readers.clips import clip_set, clips_below
from unskew.data.readers.files import images_below
from unskew.data.readers.images import image_set
from unskew.data.readers.table import from_table
from unskew.data.reading import DataConfig

_SPLIT_FOLDERS = {
    "train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2,
}  # fmt: skip


def is_result(path: Path) -> bool:
    """A folder that unskew itself wrote: a run or an audit, not data."""
    return (path / "audit.json").is_file() or ((path / "config.json").is_file() and (path / "log.jsonl").is_file())


def from_folder(root: Path, cfg: DataConfig) -> DataSet:
    for name in ("metadata.csv", "metadata.jsonl", "metadata.parquet"):
        if (root / name).is_file():  # the columns of an image folder, as Hugging Face lays them out
            return from_table(root / name, cfg)
    if cfg.bias:
        raise UserError(
            f"{root}: no bias column {cfg.bias[0]!r}: a class folder has no columns; give a metadata.csv with file_name, "
            "label and the bias columns"
        )
    children = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".") and not is_result(p))
    if not children:
        raise UserError(f"{root}: an empty folder; a source has a folder per class with images in it")
    is_split = [c.name.lower() in _SPLIT_FOLDERS for c in children]
    if any(is_split) and not all(is_split):
        odd = children[is_split.index(False)].name
        raise UserError(f"{root}: {odd!r} stands beside split folders; it must be train, val or test, or be moved away")
    parts = [(_SPLIT_FOLDERS[c.name.lower()], c) for c in children] if all(is_split) else [(0, root)]
    rows: list[tuple[str, str, int]] = []  # path, class, split
    for code, part in parts:
        folders = sorted(p for p in part.iterdir() if p.is_dir() and not p.name.startswith(".") and not is_result(p))
        if not folders:
            raise UserError(f"{part}: no class folder in it")
        for folder in folders:
            found = clips_below(folder) if cfg.frames else images_below(folder)
            if not found:
                if not cfg.frames and clips_below(folder):
                    raise UserError(f"{folder}: videos, no images; say how many frames to take of each with data.frames=8")
                what = "a clip" if cfg.frames else "an image"
                raise UserError(f"{folder}: a class folder without {what}; remove it or fill it")
            rows += [(str(p.relative_to(root)), folder.name, code) for p in found]
    classes = tuple(sorted({name for _, name, _ in rows}))
    if len(classes) < 2:
        raise UserError(f"{root}: one class only ({classes[0]}); a classifier needs at least two")
    place = {name: k for k, name in enumerate(classes)}
    y = torch.tensor([place[name] for _, name, _ in rows])
    split = torch.tensor([code for _, _, code in rows])
    carve = bool(cfg.holdout) and bool((split == 0).any())
    split, carved = carve_splits(y, split, cfg.holdout, cfg.seed) if carve else (split, ())
    build = clip_set if cfg.frames else image_set
    return build(root, [p for p, _, _ in rows], y, classes, split, SPLITS, cfg, carved=carved)
