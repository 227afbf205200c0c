r"""dogs-cats: bright and dark dogs and cats, read from disk. In training, one animal is bright and the other dark.

.. math::  \text{TB1} = \text{dark cats} \cup \text{bright dogs}, \qquad \text{TB2} = \text{bright cats} \cup \text{dark dogs}

`set=TB1` trains on TB1 and tests on TB2, `set=TB2` the reverse; a tenth of every training class is held out for validation. The
bias column is `fur`. The root holds train/ of Kaggle's Dogs vs Cats: cat.NUMBER.jpg and dog.NUMBER.jpg. Which animals are bright
comes from lists (`bright=FILE,dark=FILE`, one file name per line, as published with LNL) or, without lists, from the pixels: the
`share` of images with the highest mean brightness are bright, as many with the lowest are dark, and the rest is left out.

Source: Kim et al., "Learning not to learn", CVPR 2019, section 4.2 (8,385 bright and 8,400 dark animals; TB1 10,047, TB2 6,738).
Images: Elson et al., "Asirra", 2007.
Differs: the paper tests on Kaggle's test images with labels predicted by a model; they have no true labels, so here the opposite
set is the test. Brightness computed from pixels is that of the whole picture, not of the fur.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_lines

NEEDS = (Need("train/", "25,000 images, cat.NUMBER.jpg and dog.NUMBER.jpg (Kaggle's train.zip)"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    set: Literal["TB1", "TB2"] = "TB1"  # set to train on; the other is the test
    bright: str = ""  # list of bright animals
    dark: str = ""  # list of dark animals
    share: float = 0.33  # share of the images that are bright, and that are dark, if there are no lists

    def __post_init__(self) -> None:
        if bool(self.bright) != bool(self.dark):
            raise UserError("dogs-cats: name both lists, bright=FILE and dark=FILE, or neither")
        if not 0 < self.share <= 0.5:
            raise UserError("dogs-cats: share must lie in (0, 0.5]")


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "dogs-cats")
    files = sorted(p.name for p in (root / "train").iterdir() if p.name.startswith(("cat.", "dog.")))
    if not files:
        raise UserError(f"{root / 'train'}: no file cat.NUMBER.jpg or dog.NUMBER.jpg in it")
    fur = _from_lists(cfg) if cfg.bright else _computed(root / "train", files, cfg.share)
    wanted = {("cat", "dark"): "TB1", ("dog", "bright"): "TB1", ("cat", "bright"): "TB2", ("dog", "dark"): "TB2"}
    rows = []
    for name, kind in sorted(fur.items()):
        animal = name.partition(".")[0]
        if (animal, kind) not in wanted:
            raise UserError(f"dogs-cats: a list names {name}, which is neither cat.NUMBER.jpg nor dog.NUMBER.jpg")
        split = "train" if wanted[animal, kind] == cfg.set else "test"
        rows.append(Row(f"train/{name}", animal, split, {"fur": kind}))
    return Listing("dogs-cats", root, rows, ("cat", "dog"), {"fur": ("bright", "dark")})


def _from_lists(cfg: Config) -> dict[str, str]:
    fur: dict[str, str] = {}
    for kind, path in (("bright", cfg.bright), ("dark", cfg.dark)):
        if not Path(path).is_file():
            raise UserError(f"dogs-cats: the list {path} does not exist")
        for name in read_lines(Path(path), lambda w: Path(w[0]).name, "a file name"):
            if fur.get(name, kind) != kind:
                raise UserError(f"dogs-cats: {name} is in both lists")
            fur[name] = kind
    return fur


def _computed(folder: Path, files: list[str], share: float) -> dict[str, str]:
    def brightness(name: str) -> float:
        try:
            with Image.open(folder / name) as image:
                return float(np.asarray(image.convert("L").resize((32, 32))).mean())
        except OSError:
            return float("nan")  # left out here, counted when the images are read

    level = np.array([brightness(name) for name in files])
    order = [files[k] for k in np.argsort(level, kind="stable") if not np.isnan(level[k])]
    count = int(share * len(order))
    return dict.fromkeys(order[:count], "dark") | dict.fromkeys(order[len(order) - count :], "bright")
