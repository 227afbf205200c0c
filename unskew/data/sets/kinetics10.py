r"""kinetics10: ten actions of Kinetics, with Mimetics as a second test, read from disk.

.. math::  y_i = \text{label of the video in the list}

The ten classes are those of ReBias; `set=repair` has twelve that HMDB51 has too (`hmdb51:names=kinetics`), `set=all` every label of the
training list; or name them with `classes`. kinetics_train.csv lists the training videos, kinetics_val.csv the
test videos (columns label, youtube_id, time_start, time_end); a tenth of every training class is held out for validation. With
`mimetics=DIR`, the clips of mimetics_v1.0.csv in that folder are another split, `mimetics`, in which the same actions are
performed without their usual objects and places, so static cues mislead. Videos are named LABEL/ID_START_END.mp4, with six digits
for the seconds, under train/, val/, and videos/ of Mimetics. Many are no longer online: those not on disk are left out and
counted. Clips have data.frames frames (8) of data.size pixels (112).

Source: Carreira and Zisserman, "Quo vadis, action recognition?", CVPR 2017; Weinzaepfel and Rogez, "Mimetics", IJCV 2021; the
task: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.4.
Differs: only the videos on disk are used; the notes count those that are missing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_table

NEEDS = (
    Need("kinetics_train.csv", "label, youtube_id, time_start, time_end of the training videos"),
    Need("kinetics_val.csv", "the same for the validation videos"),
    Need("train/", "training videos: LABEL/ID_START_END.mp4"),
    Need("val/", "validation videos"),
)
CLASSES = (
    "canoeing or kayaking", "climbing a rope", "driving car", "golf driving", "opening bottle", "playing piano",
    "playing volleyball", "shooting goal (soccer)", "surfing water", "writing",
)  # fmt: skip
SHARED = (  # with HMDB51, by another name there
    "archery", "brushing hair", "cartwheeling", "clapping", "dribbling basketball", "golf driving", "hugging", "pull ups", "push up",
    "riding a bike", "shaking hands", "situp",
)  # fmt: skip
COLUMNS = ("label", "youtube_id", "time_start", "time_end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    mimetics: str = ""  # folder of Mimetics
    set: Literal["rebias", "repair", "all"] = "rebias"  # labels to use: ReBias's ten, twelve shared with HMDB51, or all
    classes: tuple[str, ...] = ()  # labels to use, in place of a set


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "kinetics10")
    classes = cfg.classes or {"rebias": CLASSES, "repair": SHARED, "all": _every(root / "kinetics_train.csv", cfg)}[cfg.set]
    sources = [("train", root / "kinetics_train.csv", root / "train"), ("test", root / "kinetics_val.csv", root / "val")]
    if cfg.mimetics:
        place = Path(cfg.mimetics)
        if not (place / "mimetics_v1.0.csv").is_file() or not (place / "videos").is_dir():
            raise UserError(f"kinetics10: {place} lacks mimetics_v1.0.csv or videos/")
        sources.append(("mimetics", place / "mimetics_v1.0.csv", place / "videos"))
    rows, notes = [], []
    for split, table, folder in sources:
        frame = read_table(table, COLUMNS)
        absent = 0
        for label, name, start, end in frame.select(COLUMNS).iter_rows():
            if label not in classes:
                continue
            file = _video(folder, label, f"{name}_{int(float(start)):06d}_{int(float(end)):06d}")
            if file is None:
                absent += 1
            else:
                rows.append(Row(str(file.relative_to(root)) if file.is_relative_to(root) else str(file.absolute()), label, split))
        if absent:
            notes.append(f"{absent} videos of the {split} list are not on disk")
        if not any(r.split == split for r in rows):
            raise UserError(f"kinetics10: none of the videos listed in {table} is in {folder}")
    return Listing("kinetics10", root, rows, tuple(classes), clips=True, notes=tuple(notes))


def _every(table: Path, cfg: Config) -> tuple[str, ...]:
    return tuple(sorted(set(read_table(table, COLUMNS)["label"].to_list()))) if cfg.set == "all" else ()


def _video(folder: Path, label: str, stem: str) -> Path | None:
    for place in (folder / label, folder / label.replace(" ", "_"), folder):
        for ending in (".mp4", ".mkv", ".webm", ".avi"):
            if (place / f"{stem}{ending}").is_file():
                return place / f"{stem}{ending}"
    return None
