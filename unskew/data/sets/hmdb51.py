r"""hmdb51: 6,766 videos of 51 actions, read from disk, with the three official splits.

.. math::  y_i = \text{folder of the video}

`fold` (1, 2 or 3) chooses the official split: ACTION_test_splitN.txt marks a video as 1 (train), 2 (test) or 0 (unused). A tenth
of every training class is held out for validation. The root holds hmdb51_org/ACTION/*.avi and testTrainMulti_7030_splits/, as
distributed. `names=kinetics` has only the twelve actions that Kinetics has too, by its names, so that a network trained on
`kinetics10:set=repair` can be judged on them. Clips have data.frames frames (8) of data.size pixels (112).

Source: Kuehne et al., "HMDB: a large video database for human motion recognition", ICCV 2011; used in Li and Vasconcelos,
"REPAIR", CVPR 2019, section 4.2.
Differs: REPAIR does not list its twelve shared classes; ours are archery (shoot_bow), brushing hair, cartwheeling, clapping, dribbling
basketball, golf driving, hugging, pull ups, push up, riding a bike, shaking hands and situp. Static bias has no column: it is what
a single frame reveals.
"""

from dataclasses import dataclass
from typing import Literal

from unskew.core.errors import UserError
from unskew.data.readers.listing import Folded, Listing, Need, Row, check_root, read_lines

KINETICS = {
    "brush_hair": "brushing hair", "cartwheel": "cartwheeling", "clap": "clapping", "dribble": "dribbling basketball",
    "golf": "golf driving", "hug": "hugging", "pullup": "pull ups", "pushup": "push up", "ride_bike": "riding a bike",
    "shake_hands": "shaking hands", "shoot_bow": "archery", "situp": "situp",
}  # fmt: skip
NEEDS = (
    Need("hmdb51_org/", "a folder of .avi files per action"),
    Need("testTrainMulti_7030_splits/", "ACTION_test_split1.txt to 3 of every action"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Folded):
    names: Literal["own", "kinetics"] = "own"  # kinetics: only the actions that Kinetics has too, by its names


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "hmdb51")
    lists = sorted((root / "testTrainMulti_7030_splits").glob(f"*_test_split{cfg.fold}.txt"))
    if not lists:
        raise UserError(f"{root / 'testTrainMulti_7030_splits'}: no file ACTION_test_split{cfg.fold}.txt in it")
    rows = []
    for path in lists:
        action = path.name.removesuffix(f"_test_split{cfg.fold}.txt")
        for file, code in read_lines(
            path, lambda w: (w[0], {"0": "", "1": "train", "2": "test"}[w[1]]), "VIDEO.avi and 0, 1 or 2"
        ):
            name = action if cfg.names == "own" else KINETICS.get(action, "")
            if code and name:
                rows.append(Row(f"hmdb51_org/{action}/{file}", name, code))
    return Listing("hmdb51", root, rows, tuple(sorted({r.label for r in rows})), clips=True)
