r"""bar: Biased Action Recognition, read from disk. Six actions, each in its usual place in training and elsewhere in the test.

.. math::  y_i \in \{\text{climbing, diving, fishing, pole vaulting, racing, throwing}\}

1,941 training and 654 test images; a tenth of every training class is held out for validation. The place is not annotated: by
design all training rows are aligned and all test rows conflicting, so there is no bias column, and the test accuracy is that of
conflicting rows. The root holds train/ and test/ with files named ACTION_NUMBER.jpg.

`part=1pct` or `part=5pct` reads the later versions with conflicting rows in training: train/PART/align/ and train/PART/conflict/ (or
PART/align/ and PART/conflict/), each with a folder per action, named or numbered from 0 in alphabetical order; the test has such folders
too. These have the bias column `place`, usual or unusual; all test rows are unusual.

Source: Nam et al., "Learning from failure", NeurIPS 2020 (github.com/alinlab/BAR); used in "Mitigating Dataset Bias Using
Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, Table 3; `part`: after Lee et al., "Revisiting the importance of
amplifying bias for debiasing", AAAI 2023, its layout from memory.
Differs: nothing.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (Need("train/", "1,941 images, ACTION_NUMBER.jpg"), Need("test/", "654 images, ACTION_NUMBER.jpg"))
CLASSES = ("climbing", "diving", "fishing", "pole vaulting", "racing", "throwing")
ENDINGS = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    part: str = ""  # 1pct or 5pct: the version with conflicting training rows


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "bar")
    if cfg.part:
        return _with_conflicting(root, cfg.part)
    rows = []
    for split in ("train", "test"):
        files = sorted(p for p in (root / split).iterdir() if p.suffix.lower() in ENDINGS)
        if not files:
            raise UserError(f"{root / split}: no images in it")
        for path in files:
            name = re.sub(r"[_\s]+", " ", path.stem.rpartition("_")[0]).strip()
            if name not in CLASSES:
                raise UserError(f"{path}: the name must start with one of {', '.join(CLASSES)}")
            rows.append(Row(f"{split}/{path.name}", name, split))
    return Listing("bar", root, rows, CLASSES)


def _with_conflicting(root: Path, part: str) -> Listing:
    """The version whose training part has aligned and conflicting rows in folders of their own."""
    home = root / "train" / part if (root / "train" / part).is_dir() else root / part
    folders = [("train", home / "align", "usual"), ("train", home / "conflict", "unusual"), ("test", root / "test", "unusual")]
    rows = []
    for split, folder, place in folders:
        if not folder.is_dir():
            raise UserError(f"bar: part={part} needs the folder {folder}")
        files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS)
        rows += [Row(path.relative_to(root).as_posix(), _action(path), split, {"place": place}) for path in files]
    return Listing("bar", root, rows, CLASSES, {"place": ("usual", "unusual")})


def _action(path: Path) -> str:
    """The action that a folder is named after, or numbered by."""
    name = re.sub(r"[_\s]+", " ", path.parent.name).strip()
    if name.isdigit() and int(name) < len(CLASSES):
        return CLASSES[int(name)]
    if name not in CLASSES:
        raise UserError(f"{path}: the folder must be one of {', '.join(CLASSES)}, or a number from 0 to {len(CLASSES) - 1}")
    return name
