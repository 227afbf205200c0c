r"""file: facts about the file, not the picture: width, height, aspect, bytes, format, JPEG quality, EXIF, colour mode.

.. math::  \phi = (w, h, w/h, \log b, \text{bits per pixel}, q, [\text{EXIF}], [\text{format}], [\text{mode}])

The JPEG quality q comes from the quantisation table: its mean divided by that of the standard table, converted to the scale from
1 to 100 that encoders use; 0 for other formats.

Source: the tables of ITU-T T.81, annex K, and the scaling of the IJG encoder.
Differs: encoders with other tables get the nearest IJG quality.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.readers.opening import FAILURES, without_exif
from unskew.data.texts import Content, in_turn

PIXELS, CONTENT = False, False  # not foreign: the bytes of a file tell what it shows, too
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
    return "" if data.paths else "the rows are not files"


def jpeg_quality(table: Sequence[float]) -> float:
    """The IJG quality whose luminance table has this mean.

    >>> round(jpeg_quality([3688 / 64] * 64))
    50
    """
    scale = sum(table) / len(table) / STANDARD_MEAN * 100
    return max(1.0, 100 - scale / 2 if scale <= 100 else 5000 / scale)


def facts(path: Content) -> list[float]:
    """The numbers of one file; zeros if its header cannot be read."""
    try:
        size = os.path.getsize(path) if isinstance(path, str) else path.seek(0, os.SEEK_END)
        with Image.open(path) as opened:
            width, height = opened.size
            tables = getattr(opened, "quantization", None)
            quality = jpeg_quality(list(tables[0])) if tables else 0.0
            exif = float(not without_exif(opened) and len(opened.getexif()) > 0)
            kind, mode = opened.format, opened.mode
    except FAILURES:
        return [0.0] * (7 + len(FORMATS) + len(MODES))
    numbers = [
        float(width),
        float(height),
        width / max(height, 1),
        math.log(max(size, 1)),
        8 * size / max(width * height, 1),
        quality,
        exif,
    ]
    return [*numbers, *(float(kind == f) for f in FORMATS), *(float(mode == m) for m in MODES)]


def features(data: DataSet, index: Tensor, x: Tensor | None, cfg: Config) -> Tensor:
    return torch.tensor([facts(content) for content in in_turn(data.paths, index.tolist())])
