r"""imsitu: pictures of 504 actions and their agents, read from disk. The class is the verb, the bias the agent's gender.

.. math::  y_i = \text{verb}_i, \qquad b_i = \text{the gender of the agent that most annotators name}

Of the agents named by three annotators, man (n10287213) and boy (n10285313), or woman (n10787470) and girl (n10084295,
n10129825), count as votes; images without a majority for one gender are left out and counted. So are verbs with fewer than
`least` training images of either gender. The splits are train.json, dev.json (val) and test.json. The root holds them, and the
images in of500_images_resized/, as distributed.

Source: Yatskar et al., "Situation recognition", CVPR 2016; the task: Wang et al., "Balanced datasets are not enough", ICCV 2019
(211 verbs).
Differs: the papers publish a list of images, not the rule; `least` is set so that there are about as many verbs. `lists=DIR` takes
the authors' lists instead: train.txt, val.txt and test.txt with a file name per line (24,301 training images; 14,684 at alpha 1).
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, chosen_rows, read_json

NEEDS = (
    Need("train.json", "situations of 75,702 training images"),
    Need("dev.json", "situations of 25,200 development images"),
    Need("test.json", "situations of 25,200 test images"),
    Need("of500_images_resized/", "the images, VERB_NUMBER.jpg"),
)
PUBLISHED = {24_301: "original", 21_143: "alpha 3", 19_149: "alpha 2", 14_684: "alpha 1"}  # training images, Table 1
NOUNS = {
    "n10287213": "man", "n10285313": "man", "n10787470": "woman", "n10084295": "woman", "n10129825": "woman",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    lists: str = ""  # folder of train.txt, val.txt and test.txt with the images to use; empty: all, by the rule
    least: int = 1  # training images of each gender that a verb needs


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "imsitu")
    images: list[tuple[str, str, str, str]] = []  # file, verb, split, gender
    left_out: Counter[str] = Counter()
    for split, file in (("train", "train.json"), ("val", "dev.json"), ("test", "test.json")):
        for name, situation in sorted(read_json(root / file).items()):
            verb, agents = _situation(root / file, name, situation)
            gender = gender_of(agents)
            if gender in ("man", "woman"):
                images.append((name, verb, split, gender))
            else:
                left_out["agents of both genders" if gender == "both" else "agents of no gender"] += 1
    counts = Counter((verb, gender) for _, verb, split, gender in images if split == "train")
    verbs = tuple(v for v in sorted({v for _, v, _, _ in images}) if min(counts[v, "man"], counts[v, "woman"]) >= cfg.least)
    rows = [Row(f"of500_images_resized/{n}", v, s, {"gender": g}) for n, v, s, g in images if v in set(verbs)]
    if len(rows) < len(images):
        left_out["verbs with too few of a gender"] = len(images) - len(rows)
    notes = tuple(f"{n} images left out: {why}" for why, n in left_out.items())
    if cfg.lists:
        rows, notes = chosen_rows(rows, cfg.lists, "imsitu", PUBLISHED)
    return Listing("imsitu", root, rows, verbs, {"gender": ("man", "woman")}, notes=notes)


def gender_of(agents: list[str]) -> str:
    """man or woman, by majority of the annotators who name either; both for a tie, no if none does.

    >>> gender_of(["n10287213", "n10287213", "n10787470"])
    'man'
    """
    votes = Counter(NOUNS[a] for a in agents if a in NOUNS)
    if not votes:
        return "no"
    return "both" if votes["man"] == votes["woman"] else votes.most_common(1)[0][0]


def _situation(path: Path, name: str, situation: Any) -> tuple[str, list[str]]:
    try:
        return situation["verb"], [frame.get("agent", "") for frame in situation["frames"]]
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: {name} has no verb and frames; is it an imSitu annotation file?") from None
