r"""ucf101: 13,320 videos of 101 actions, read from disk, with the three official splits.

.. math::  y_i = \text{folder of the video}

`fold` (1, 2 or 3) chooses the official split: trainlist0N.txt and testlist0N.txt; a tenth of every training class is held out for
validation. The root holds UCF-101/ACTION/*.avi and ucfTrainTestlist/, as distributed. Clips have data.frames frames (8) of
data.size pixels (112).

Source: Soomro, Zamir, Shah, "UCF101", 2012; used in Li and Vasconcelos, "REPAIR", CVPR 2019, Tables 1 and 3.
Differs: nothing. Static bias has no column: it is what a single frame reveals (`unskew audit`, representation frame).
"""

from unskew.data.readers.listing import Folded, Listing, Need, Row, check_root, read_lines

Config = Folded


NEEDS = (
    Need("UCF-101/", "a folder of .avi files per action (UCF101.rar)"),
    Need("ucfTrainTestlist/", "trainlist01.txt, testlist01.txt and those of splits 2 and 3"),
)


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "ucf101")
    rows = []
    for split in ("train", "test"):
        path = root / "ucfTrainTestlist" / f"{split}list0{cfg.fold}.txt"
        files = read_lines(path, _video, "ACTION/VIDEO.avi")
        rows += [Row(f"UCF-101/{file}", file.partition("/")[0], split) for file in files]
    return Listing("ucf101", root, rows, tuple(sorted({r.label for r in rows})), clips=True)


def _video(words: list[str]) -> str:
    action, name = words[0].split("/")
    return f"{action}/{name}"
