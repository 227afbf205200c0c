r"""file: facts about the file, not the picture: width, height, aspect, bytes, format, JPEG quality, EXIF, colour mode.

.. math::  \phi = (w, h, w/h, \log b, \text{bits per pixel}, q, [\text{EXIF}], [\text{format}], [\text{mode}])

The JPEG quality q comes from the quantisation table: its mean divided by that of the standard table, converted to the scale from
1 to 100 that encoders use; 0 for other formats.

Source: the tables of ITU-T T.81, annex K, and the scaling of the IJG encoder.
Differs: encoders with other tables get the nearest IJG quality.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Header, Picture
from unskew.representations._contract import files_only

PIXELS, CONTENT = True, False  # not foreign: the bytes of a file tell what it shows, too
VARIANTS: tuple[dict[str, str], ...] = ({},)
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
MODES = ("RGB", "L", "RGBA", "P", "CMYK")
STANDARD_MEAN = 3688 / 64  # of the luminance table at quality 50


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the file's size, format and compression"


def applies(data: DataSet, cfg: Config) -> str:
    return files_only(data)


def jpeg_quality(table: Sequence[float]) -> float:
    """The IJG quality whose luminance table has this mean.

    >>> round(jpeg_quality([3688 / 64] * 64))
    50
    """
    scale = sum(table) / len(table) / STANDARD_MEAN * 100
    return max(1.0, 100 - scale / 2 if scale <= 100 else 5000 / scale)


def facts(header: Header) -> list[float]:
    """The numbers of one file; zeros if its header cannot be read."""
    if not header.kind:
        return [0.0] * (7 + len(FORMATS) + len(MODES))
    width, height = header.size
    numbers = [
        float(width),
        float(height),
        width / max(height, 1),
        math.log(max(header.length, 1)),
        8 * header.length / max(width * height, 1),
        jpeg_quality(header.tables[0]) if header.tables else 0.0,
        float(header.tagged),
    ]
    return [*numbers, *(float(header.kind == f) for f in FORMATS), *(float(header.mode == m) for m in MODES)]


def look(picture: Picture, cfg: Config) -> Floats:
    return np.array(facts(picture.header or Header()), dtype=np.float32)
