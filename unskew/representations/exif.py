r"""exif: what the camera or an editor wrote into the file: make, model, orientation, software, or the date it was taken.

.. math::  \phi = \text{one of 32 codes of the text}, \quad \text{or } (\text{days},\ \text{month},\ \text{weekday},\ \text{hour})
           \text{ of a date}

A file without the field has a code of its own. Texts are mixed into 32 codes, the same in every run; two texts may share one.

Source: Exif 2.32, JEITA CP-3451.
Differs: nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import TAGS, Floats, Picture, read_header
from unskew.data.texts import in_turn
from unskew.representations._contract import files_only
from unskew.representations.encoder import one_of

PIXELS, CONTENT, FOREIGN, PROBE = True, False, True, True
VARIANTS = tuple({"field": name} for name in TAGS)
CODES = 32
SOME = 400  # files whose headers decide whether a field is there at all


@dataclass(frozen=True)
class Config:
    field: Literal["make", "model", "orientation", "software", "date"] = "make"  # the field of the header


def phrase(cfg: Config) -> str:
    names = {"make": "the camera's make", "model": "the camera's model", "orientation": "the orientation in the file's header"}
    return (
        names.get(cfg.field)
        or {"software": "the software that wrote the file", "date": "the date the picture was taken"}[cfg.field]
    )


@lru_cache(maxsize=8)
def _fields(paths: Sequence[str], rows: tuple[int, ...]) -> frozenset[str]:
    """The fields that any of these rows' files has."""
    return frozenset(name for content in in_turn(paths, rows) for name in read_header(content).exif)


def applies(data: DataSet, cfg: Config) -> str:
    if why := files_only(data):
        return why
    some = tuple(range(0, len(data.paths), max(1, -(-len(data.paths) // SOME))))
    return "" if cfg.field in _fields(data.paths, some) else f"none of {len(some)} files has this field in its header"


def date_of(text: str) -> list[float]:
    """(there, days since 2000, month, weekday, hour and its second harmonic) of a date as a header has it; zeros if it is none.

    >>> date_of("2000:01:02 06:00:00")[:2], date_of("unknown")[:2]
    ([1.0, 1.25], [0.0, 0.0])
    """
    try:
        at = datetime.strptime(text[:19], "%Y:%m:%d %H:%M:%S")
    except ValueError:
        return [0.0] * 10
    hour = (at.hour + at.minute / 60) / 24 * 2 * np.pi
    month = (at.month - 1) / 12 * 2 * np.pi
    days = (at - datetime(2000, 1, 1)).total_seconds() / 86400
    waves = [float(f(angle)) for angle in (hour, 2 * hour, month) for f in (np.sin, np.cos)]
    return [1.0, days, float(at.weekday()), float(at.weekday() > 4), *waves]


def look(picture: Picture, cfg: Config) -> Floats:
    text = picture.header.exif.get(cfg.field, "") if picture.header is not None else ""
    numbers = date_of(text) if cfg.field == "date" else [float(not text), *one_of(text, CODES)]
    return np.array(numbers, dtype=np.float32)
