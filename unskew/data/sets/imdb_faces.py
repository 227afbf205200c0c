r"""imdb-faces: faces of IMDB-WIKI, read from disk. In training, women are young and men old, or the reverse.

.. math::
    \text{EB1} = \text{women up to } a \cup \text{men from } b, \qquad \text{EB2} = \text{men up to } a \cup \text{women from } b

`set` is EB1 or EB2, the set to train on. `target=gender` has the bias column `age`, `target=age` the bias column `gender`. a =
`young` (29) and b = `old` (40) years, our reading of LNL. A fifth of the people, chosen by their id in the file path, are kept
for the test, with both age groups; of the others, those of the opposite set are the split `opposite`, the paper's other column. A
tenth of every training class is held out for validation. `bins=20,25,45,50` cuts the ages further: values are then under 20, 20 to
24 and so on. Faces with a detector score below
`score`, with a second face, or without a gender are left out and counted. The root holds imdb_crop/ with imdb.mat, as
distributed.

Source: Rothe et al., "Deep expectation of real and apparent age", IJCV 2018; the task: Kim et al., "Learning not to learn", CVPR
2019, section 4.3 (EB1 36,004, EB2 16,800, test 13,129 faces).
Differs: the paper cleans the set with an unpublished network; the page with its age limits is missing from our copy.
"""

import bisect
import datetime
import hashlib
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (
    Need("imdb_crop/", "folders 00 to 99 of cropped faces (imdb_crop.tar)"),
    Need("imdb_crop/imdb.mat", "dates of birth, years of the photographs, genders, detector scores"),
)
GENDERS, AGES = ("female", "male"), ("young", "old")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    set: Literal["EB1", "EB2"] = "EB1"  # set to train on
    target: Literal["gender", "age"] = "gender"  # the class; the other is the bias column
    young: int = 29  # highest age of the young
    old: int = 40  # lowest age of the old
    bins: tuple[int, ...] = ()  # ages at which the values of age are cut; empty: young and old
    score: float = 1.0  # lowest score of the face detector

    def __post_init__(self) -> None:
        if not 0 <= self.young < self.old:
            raise UserError("imdb-faces: young must be below old")
        if list(self.bins) != sorted(set(self.bins)) or any(age < 1 for age in self.bins):
            raise UserError("imdb-faces: bins must be ages in rising order")

    @property
    def ages(self) -> tuple[str, ...]:
        """The values of age."""
        if not self.bins:
            return AGES
        between = [f"{a} to {b - 1}" for a, b in itertools.pairwise(self.bins)]
        return (f"under {self.bins[0]}", *between, f"{self.bins[-1]} and over")


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "imdb-faces")
    table = _read(root / "imdb_crop" / "imdb.mat")
    rows, left_out = [], {"score below the limit": 0, "second face": 0, "no gender": 0, "age between the limits": 0}
    for born, taken, path, gender, first, second in zip(*table, strict=True):
        age = int(taken) - (datetime.date.fromordinal(max(int(born), 367)) - datetime.timedelta(days=366)).year
        if not first >= cfg.score:
            left_out["score below the limit"] += 1
        elif not math.isnan(second):
            left_out["second face"] += 1
        elif math.isnan(gender):
            left_out["no gender"] += 1
        elif cfg.young < age < cfg.old or not 0 <= age <= 100:
            left_out["age between the limits"] += 1
        else:
            rows.append(_row(cfg, str(path), GENDERS[int(gender)], age))
    known = {"gender": GENDERS, "age": cfg.ages}
    other = "age" if cfg.target == "gender" else "gender"
    notes = tuple(f"{n} faces left out: {why}" for why, n in left_out.items() if n)
    return Listing("imdb-faces", root, rows, known[cfg.target], {other: known[other]}, notes=notes)


def _row(cfg: Config, path: str, gender: str, years: int) -> Row:
    aligned = (gender, AGES[years >= cfg.old]) in (
        (("female", "young"), ("male", "old")) if cfg.set == "EB1" else (("male", "young"), ("female", "old"))
    )
    person = path.rpartition("/")[2].partition("_")[0]  # nm0000001_rm...: the person's id
    test = int(hashlib.sha256(person.encode()).hexdigest(), 16) % 5 == 0
    age = cfg.ages[bisect.bisect_right(cfg.bins, years)] if cfg.bins else AGES[years >= cfg.old]
    label, bias = (gender, {"age": age}) if cfg.target == "gender" else (age, {"gender": gender})
    return Row(f"imdb_crop/{path}", label, "test" if test else "train" if aligned else "opposite", bias)


def _read(path: Path) -> list[np.ndarray]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        table = loadmat(path, simplify_cells=True)["imdb"]
        names = ("dob", "photo_taken", "full_path", "gender", "face_score", "second_face_score")
        return [np.atleast_1d(table[name]) for name in names]
    except (KeyError, ValueError, OSError, NotImplementedError, TypeError, MatReadError) as error:
        raise UserError(f"{path} is not the table of IMDB-WIKI ({type(error).__name__}: {error})") from None
