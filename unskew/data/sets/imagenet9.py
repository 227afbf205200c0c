r"""imagenet9: nine groups of animals from ImageNet, with ImageNet-A and -C, read from disk.

.. math::  y = g(c), \qquad g: \text{classes of ImageNet} \to \{\text{dog, cat, frog, turtle, bird, monkey, fish, crab, insect}\}

=======  ==========================  =======  ==========================  =======  =======================
dog      151 207 234 235 254         turtle   33 to 37                    fish     393 to 397
cat      281 to 285                  bird     89 90 94 96 97              crab     118 to 121
frog     30 to 32                    monkey   372 373 374 375 378         insect   306 to 310
=======  ==========================  =======  ==========================  =======  =======================

Numbers are positions in the sorted list of the thousand WordNet ids in LOC_synset_mapping.txt. The root is that of ImageNet:
train/ID/ and val/ID/ (validation images sorted into folders). A tenth of every training class is held out for validation; val/ is
the test split. With `a=DIR`, the images of ImageNet-A of these ids are another split, `imagenet_a`; with
`c=DIR,corruption=fog,severity=3`, those of ImageNet-C are a split `imagenet_c`. There is no bias column;
`unskew.measure.texture_clusters` finds the texture clusters of ReBias.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.3; groups after Ilyas
et al., "Adversarial examples are not bugs, they are features", 2019; Hendrycks et al., "Natural adversarial examples", CVPR 2021.
Differs: a tenth of the training images is held out, where ReBias trains on all. The groups have three to five classes each, so they
differ in size; `balance=true` takes as many images of each, evenly over their classes.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, images_below, read_lines

NEEDS = (
    Need("LOC_synset_mapping.txt", "the thousand WordNet ids in order, one per line (with Kaggle's ImageNet)"),
    Need("train/", "a folder of images per WordNet id"),
    Need("val/", "the same for the validation images"),
)
GROUPS: dict[str, tuple[int, ...]] = {
    "dog": (151, 207, 234, 235, 254), "cat": (281, 282, 283, 284, 285), "frog": (30, 31, 32), "turtle": (33, 34, 35, 36, 37),
    "bird": (89, 90, 94, 96, 97), "monkey": (372, 373, 374, 375, 378), "fish": (393, 394, 395, 396, 397),
    "crab": (118, 119, 120, 121), "insect": (306, 307, 308, 309, 310),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of ImageNet
    a: str = ""  # folder of ImageNet-A
    c: str = ""  # folder of ImageNet-C
    corruption: str = "gaussian_noise"  # corruption of ImageNet-C to read
    severity: int = 3  # its severity, 1 to 5
    balance: bool = False  # as many training images of every group, evenly over its classes


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "imagenet9")
    ids = read_lines(root / "LOC_synset_mapping.txt", lambda w: w[0], "a WordNet id")
    if len(ids) != 1000 or ids != sorted(ids):
        raise UserError(f"{root / 'LOC_synset_mapping.txt'}: needs 1000 WordNet ids in sorted order, got {len(ids)} ids")
    places = {"train": root / "train", "test": root / "val"}
    if cfg.a:
        places["imagenet_a"] = Path(cfg.a)
    if cfg.c:
        folders = [p for p in Path(cfg.c).rglob(cfg.corruption) if p.is_dir()]
        if not folders:
            raise UserError(f"imagenet9: no folder {cfg.corruption} under {cfg.c}")
        places["imagenet_c"] = folders[0] / str(cfg.severity)
    rows = []
    for split, folder in places.items():
        count = 0
        for group, numbers in GROUPS.items():
            for number in numbers:
                place = folder / ids[number]
                if not place.is_dir():
                    if split in ("train", "test"):
                        raise UserError(f"imagenet9: {place} is missing ({group})")
                    continue  # ImageNet-A has two hundred of the thousand
                images = images_below(place)
                count += len(images)
                rows += [Row(_from(root, p), group, split) for p in images]
        if not count:
            raise UserError(f"imagenet9: no images of the nine groups under {folder}")
    notes: tuple[str, ...] = ()
    if cfg.balance:
        rows, notes = balanced(rows)
    return Listing("imagenet9", root, rows, tuple(GROUPS), notes=notes)


def balanced(rows: list[Row]) -> tuple[list[Row], tuple[str, ...]]:
    """As many training rows of every group, taken in turn from its classes; other splits stay as they are."""
    train: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.split == "train":
            train.setdefault(row.label, {}).setdefault(str(Path(row.file).parent), []).append(row)
    least = min(sum(map(len, classes.values())) for classes in train.values())
    kept: list[Row] = []
    for classes in train.values():
        turns = itertools.zip_longest(*classes.values())
        kept += [row for turn in turns for row in turn if row is not None][:least]
    others = [row for row in rows if row.split != "train"]
    return [*kept, *others], (f"{len(rows) - len(others) - len(kept)} training images left out, so that every group has {least}",)


def _from(root: Path, path: Path) -> str:
    """Relative to the root if below it; ImageNet-A and -C may be elsewhere."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path.absolute())
