r"""bar: Biased Action Recognition, read from disk. Six actions, each photographed at its usual place in training and elsewhere in the
test.

.. math::  y_i \in \{\text{climbing, diving, fishing, pole vaulting, racing, throwing}\}

1,941 images train, 654 test. The place is not annotated: all training rows are aligned and all test rows conflicting by the set's
design, so there is no bias column; the test accuracy is the conflicting one. The root holds train/ and test/ with files named
ACTION_NUMBER.jpg. A tenth of every class in training validates.

Source: Nam et al., "Learning from failure", NeurIPS 2020 (github.com/alinlab/BAR); used in Ahn and Yun, ICLR 2022 submission, Table
3.
Differs: nothing.
"""

import re
from dataclasses import dataclass

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (Need("train/", "1,941 images, ACTION_NUMBER.jpg"), Need("test/", "654 images, ACTION_NUMBER.jpg"))
CLASSES = ("climbing", "diving", "fishing", "pole vaulting", "racing", "throwing")
ENDINGS = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "bar")
    rows = []
    for split in ("train", "test"):
        files = sorted(p for p in (root / split).iterdir() if p.suffix.lower() in ENDINGS)
        if not files:
            raise UserError(f"{root / split}: no image in it")
        for path in files:
            name = re.sub(r"[_\s]+", " ", path.stem.rpartition("_")[0]).strip()
            if name not in CLASSES:
                raise UserError(f"{path}: begins with none of {', '.join(CLASSES)}")
            rows.append(Row(f"{split}/{path.name}", name, split))
    return Listing("bar", root, rows, CLASSES)
