r"""imsitu: pictures of 504 actions with who does them, read from disk. The class is the verb, the bias the agent's gender.

.. math::  y_i = \text{verb}_i, \qquad b_i = \text{the gender of the agent that most annotators name}

Of three annotators' agents, those with the noun man (n10287213) or woman (n10787470), or boy (n10285313) and girl (n10084295,
n10129825), count; images in which both or neither are named by most are left out, and counted. Verbs with fewer than `least` images
of either gender in training are left out. train.json trains, dev.json validates, test.json tests. The root holds them, and the
images in of500_images_resized/, as distributed.

Source: Yatskar et al., "Situation recognition", CVPR 2016; the task: Wang et al., "Balanced datasets are not enough", ICCV 2019
(211 verbs).
Differs: the papers give the list of images, not the rule; `least` is set so that the verbs are about as many.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_json

NEEDS = (
    Need("train.json", "situations of 75,702 training images"),
    Need("dev.json", "of 25,200 images for development"),
    Need("test.json", "of 25,200 test images"),
    Need("of500_images_resized/", "the images, VERB_NUMBER.jpg"),
)
NOUNS = {
    "n10287213": "man", "n10285313": "man", "n10787470": "woman", "n10084295": "woman", "n10129825": "woman",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""
    least: int = 1  # training images of each gender that a verb needs


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "imsitu")
    found: list[tuple[str, str, str, str]] = []
    left_out: Counter[str] = Counter()
    for split, file in (("train", "train.json"), ("val", "dev.json"), ("test", "test.json")):
        for name, situation in sorted(read_json(root / file).items()):
            verb, agents = _situation(root / file, name, situation)
            gender = gender_of(agents)
            if gender in ("man", "woman"):
                found.append((name, verb, split, gender))
            else:
                left_out[f"agents of {gender} gender"] += 1
    counts = Counter((verb, gender) for _, verb, split, gender in found if split == "train")
    verbs = tuple(v for v in sorted({v for _, v, _, _ in found}) if min(counts[v, "man"], counts[v, "woman"]) >= cfg.least)
    rows = [Row(f"of500_images_resized/{n}", v, s, {"gender": g}) for n, v, s, g in found if v in set(verbs)]
    if len(rows) < len(found):
        left_out["verbs with too few of a gender"] = len(found) - len(rows)
    notes = tuple(f"{n} images left out: {why}" for why, n in left_out.items())
    return Listing("imsitu", root, rows, verbs, {"gender": ("man", "woman")}, notes=notes)


def gender_of(agents: list[str]) -> str:
    """man, woman, both or no, by the majority of the annotators who name either.

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
        raise UserError(f"{path}: {name} has no verb and frames; is it an annotation file of imSitu?") from None
