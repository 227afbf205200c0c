r"""something-v2: 220,847 videos of hands doing something with something, read from disk. What happens cannot be told from a frame.

.. math::  y_i = \text{template of the label}

something-something-v2-train.json trains, -validation.json tests (the official test has no labels); a tenth of every class in
training validates. The root holds these, something-something-v2-labels.json and the videos in 20bn-something-something-v2/ID.webm,
as distributed. `classes` limits it to some templates. Clips have data.frames frames (8) of data.size pixels (112).

Source: Goyal et al., "The something something video database", ICCV 2017; REPAIR's temporal structure score is measured on it (Li
and Vasconcelos, CVPR 2019, section 5).
Differs: nothing.
"""

from dataclasses import dataclass

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_json

START = "something-something-v2-"
NEEDS = (
    Need(f"{START}labels.json", "the 174 templates"),
    Need(f"{START}train.json", "id and template of the training videos"),
    Need(f"{START}validation.json", "the same of the validation videos"),
    Need("20bn-something-something-v2/", "the videos, ID.webm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""
    classes: tuple[str, ...] = ()  # templates; all if none is named


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "something-v2")
    known = tuple(read_json(root / f"{START}labels.json"))
    strange = [c for c in cfg.classes if c not in known]
    if strange:
        raise UserError(f"something-v2: no template {strange[0]!r} in {root / f'{START}labels.json'}")
    wanted = cfg.classes or known
    rows = []
    for split, part in (("train", "train"), ("test", "validation")):
        path = root / f"{START}{part}.json"
        for entry in read_json(path):
            try:
                label, file = entry["template"].replace("[", "").replace("]", ""), f"{entry['id']}.webm"
            except (KeyError, TypeError, AttributeError):
                raise UserError(f"{path}: an entry without id and template") from None
            if label not in known:
                raise UserError(f"{path}: {label!r} is no template of the labels file")
            if label in wanted:
                rows.append(Row(f"20bn-something-something-v2/{file}", label, split))
    return Listing("something-v2", root, rows, tuple(wanted), clips=True)
