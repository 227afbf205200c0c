r"""bffhq: faces, young or old, of which nearly all the young are women and the old are men; read from disk.

.. math::  (x_i, y_i, b_i) = (\text{image}, \text{age}_i, \text{gender}_i), \qquad P(b_i = y_i) = 0.995 \text{ in training}

The root holds a folder for the training part (`part`, 0.5pct as distributed; others such as 1pct if they were made) with align/ and
conflict/, each with a folder per class, and valid/ and test/. The last two numbers of a file's name are age (0 young, 1 old) and gender
(0 woman, 1 man).

Source: Kim, Lee, Choo, "BiaSwap", ICCV 2021, as released with Lee et al., "Learning debiased representation via disentangled feature
augmentation", NeurIPS 2021; from FFHQ (Karras et al., CVPR 2019; CC BY-NC-SA 4.0).
Differs: the test has all its rows; the authors judge only the conflicting ones, which `conflicting` is.
"""

from dataclasses import dataclass
from pathlib import Path

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (Need("valid/", "faces, NUMBER_AGE_GENDER.png"), Need("test/", "faces, NUMBER_AGE_GENDER.png"))
CLASSES, KINDS = ("young", "old"), ("woman", "man")
ENDINGS = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    part: str = "0.5pct"  # folder of the training rows


def listing(cfg: Config) -> Listing:
    root = check_root(
        cfg.root, (*NEEDS, *(Need(f"{cfg.part}/{kind}/", "training faces") for kind in ("align", "conflict"))), "bffhq"
    )
    rows = []
    for split, folders in (("train", (f"{cfg.part}/align", f"{cfg.part}/conflict")), ("val", ("valid",)), ("test", ("test",))):
        files = sorted(p for folder in folders for p in (root / folder).rglob("*") if p.suffix.lower() in ENDINGS)
        if not files:
            raise UserError(f"{root / folders[0]}: no images in it")
        rows += [_row(root, path, split) for path in files]
    return Listing("bffhq", root, rows, CLASSES, {"gender": KINDS})


def _row(root: Path, path: Path, split: str) -> Row:
    words = path.stem.split("_")
    if len(words) < 3 or not {words[-2], words[-1]} <= {"0", "1"}:
        raise UserError(f"{path}: the name must end in age and gender, such as 00012_0_1.png")
    return Row(path.relative_to(root).as_posix(), CLASSES[int(words[-2])], split, {"gender": KINDS[int(words[-1])]})
