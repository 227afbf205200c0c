r"""urbancars: city cars and country cars with two shortcuts at once, the background and an object beside the car; read from disk.

.. math::  P(\text{bg}_i = y_i) = P(\text{co}_i = y_i) = 0.95 \text{ in training}, \qquad 0.5 \text{ in val and test}

The root holds bg-0.95_co_occur_obj-0.95/train/ and bg-0.5_co_occur_obj-0.5/val/ and test/, each with folders named
obj-CLASS_bg-KIND_co_occur_obj-KIND, where each is urban or country. Bias columns: `background` and `object`.

Source: Li, Evtimov, Gordo, Hazirbas, Hassner, Canton Ferrer, Xu, Ibrahim, "A Whac-A-Mole dilemma: shortcuts come in multiples where
mitigating one amplifies others", CVPR 2023 (github.com/facebookresearch/Whac-A-Mole).
Differs: nothing.
"""

import re
from dataclasses import dataclass

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root

TRAIN, EVEN = "bg-0.95_co_occur_obj-0.95", "bg-0.5_co_occur_obj-0.5"
NEEDS = (
    Need(f"{TRAIN}/train/", "training images in folders obj-CLASS_bg-KIND_co_occur_obj-KIND"),
    Need(f"{EVEN}/val/", "validation images, all groups equally often"),
    Need(f"{EVEN}/test/", "test images, all groups equally often"),
)
KINDS = ("urban", "country")
GROUP = re.compile(r"obj-(urban|country)_bg-(urban|country)_co_occur_obj-(urban|country)")
ENDINGS = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "urbancars")
    rows = []
    for split, folder in (("train", f"{TRAIN}/train"), ("val", f"{EVEN}/val"), ("test", f"{EVEN}/test")):
        for place in sorted(p for p in (root / folder).iterdir() if p.is_dir()):
            named = GROUP.fullmatch(place.name)
            if not named:
                raise UserError(f"{place}: the folder must be named obj-CLASS_bg-KIND_co_occur_obj-KIND, each urban or country")
            y, background, beside = named.groups()
            files = sorted(p for p in place.iterdir() if p.suffix.lower() in ENDINGS)
            bias = {"background": background, "object": beside}
            rows += [Row(p.relative_to(root).as_posix(), y, split, bias) for p in files]
        if not any(row.split == split for row in rows):
            raise UserError(f"{root / folder}: no images in it")
    return Listing("urbancars", root, rows, KINDS, {"background": KINDS, "object": KINDS})
