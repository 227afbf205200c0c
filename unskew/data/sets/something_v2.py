r"""something-v2: 220,847 videos of hands doing something with something, read from disk. A single frame does not show the action.

.. math::  y_i = \text{template of the label}

something-something-v2-train.json lists the training videos, -validation.json the test videos (the official test has no labels); a
tenth of every training class is held out for validation. The root holds these, something-something-v2-labels.json and the videos
in 20bn-something-something-v2/ID.webm, as distributed. `classes` limits it to some templates. Clips have data.frames frames (8)
of data.size pixels (112).

Source: Goyal et al., "The something something video database", ICCV 2017; REPAIR measures its temporal structure score on it (Li
and Vasconcelos, CVPR 2019, section 4.2).
Differs: nothing.
"""

from dataclasses import dataclass

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_json

START = "something-something-v2-"
NEEDS = (
    Need(f"{START}labels.json", "the 174 templates"),
    Need(f"{START}train.json", "id and template of the training videos"),
    Need(f"{START}validation.json", "the same for the validation videos"),
    Need("20bn-something-something-v2/", "the videos, ID.webm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    classes: tuple[str, ...] = ()  # templates to use; empty: all


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "something-v2")
    known = tuple(read_json(root / f"{START}labels.json"))
    unknown = [c for c in cfg.classes if c not in known]
    if unknown:
        raise UserError(f"something-v2: no template {unknown[0]!r} in {root / f'{START}labels.json'}")
    wanted = cfg.classes or known
    rows = []
    for split, part in (("train", "train"), ("test", "validation")):
        path = root / f"{START}{part}.json"
        for entry in read_json(path):
            try:
                label, file = entry["template"].replace("[", "").replace("]", ""), f"{entry['id']}.webm"
            except (KeyError, TypeError, AttributeError):
                raise UserError(f"{path}: an entry has no id or template") from None
            if label not in known:
                raise UserError(f"{path}: {label!r} is not a template of the labels file")
            if label in wanted:
                rows.append(Row(f"20bn-something-something-v2/{file}", label, split))
    return Listing("something-v2", root, rows, tuple(wanted), clips=True)
