r"""nico-plus: NICO++, things in contexts: a dog on grass, in water, in autumn; read from disk.

.. math::  (x_i, y_i, b_i) = (\text{image}, \text{category}_i, \text{context}_i)

The root holds train/CONTEXT/CATEGORY/ with images, as the challenge distributes the common contexts; its test part has no labels and is
not read. The bias column is `context`. `test` names contexts that make up the test split, never seen in training, as for domain
generalisation; without it, test rows are taken from all contexts. `categories` keeps some classes.

Source: Zhang, He, Xu, Yu, Shen, Cui, "NICO++: towards better benchmarking for domain generalization", CVPR 2023
(github.com/xxgege/NICO-plus).
Differs: nothing.
"""

from dataclasses import dataclass

from unskew.core.errors import UserError, suggest
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (Need("train/", "a folder per context, with a folder per category"),)
ENDINGS = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    test: tuple[str, ...] = ()  # contexts of the test split
    categories: tuple[str, ...] = ()  # classes to keep; empty: all


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "nico-plus")
    contexts = sorted(p.name for p in (root / "train").iterdir() if p.is_dir())
    for name in cfg.test:
        if name not in contexts:
            raise UserError(f"{root / 'train'}: no context {name!r}{suggest(name, contexts)}")
    found = sorted({p.name for context in contexts for p in (root / "train" / context).iterdir() if p.is_dir()})
    for name in cfg.categories:
        if name not in found:
            raise UserError(f"{root / 'train'}: no category {name!r}{suggest(name, found)}")
    classes = tuple(name for name in found if not cfg.categories or name in cfg.categories)
    rows = []
    for context in contexts:
        for name in classes:
            place = root / "train" / context / name
            files = sorted(p for p in place.iterdir() if p.suffix.lower() in ENDINGS) if place.is_dir() else []
            split = "test" if context in cfg.test else "train"
            rows += [Row(p.relative_to(root).as_posix(), name, split, {"context": context}) for p in files]
    if not rows:
        raise UserError(f"{root / 'train'}: no images in CONTEXT/CATEGORY folders")
    return Listing("nico-plus", root, rows, classes, {"context": tuple(contexts)})
