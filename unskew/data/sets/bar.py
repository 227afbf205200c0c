r"""bar: Biased Action Recognition, read from disk. Six actions, each in its usual place in training and elsewhere in the test.

.. math::  y_i \in \{\text{climbing, diving, fishing, pole vaulting, racing, throwing}\}

1,941 training and 654 test images; a tenth of every training class is held out for validation. The place is not annotated: by
design all training rows are aligned and all test rows conflicting, so there is no bias column, and the test accuracy is that of
conflicting rows. The root holds train/ and test/ with files named ACTION_NUMBER.jpg.

Source: Nam et al., "Learning from failure", NeurIPS 2020 (github.com/alinlab/BAR); used in "Mitigating Dataset Bias Using
Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, Table 3.
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
    root: str = ""  # folder of the data set


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "bar")
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
