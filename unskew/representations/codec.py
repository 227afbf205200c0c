r"""codec: what the container of a clip says: codec, pixel format, frame rate, size, length, bits per second.

.. math::  \phi = \big([\text{codec}],\ [\text{format}],\ [\text{container}],\ \log f,\ \log w,\ \log h,\ \log t,\ \log b\big)

Names are mixed into eight codes each, the same in every run. A clip that is a folder of frames, or cannot be opened, has zeros.

Source: made here.
Differs: nothing.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.readers.clips import VIDEO, _av
from unskew.representations.encoder import one_of

PIXELS, CONTENT, FOREIGN, PROBE = False, False, True, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
CODES = 8


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the clip's codec, frame rate and length"


def applies(data: DataSet, cfg: Config) -> str:
    if len(data.shape) != 4:
        return f"inputs of shape {data.shape} are not clips"
    if not any(Path(path).suffix.lower() in VIDEO for path in data.paths):
        return "the clips are not video files"
    try:
        _av()
    except UserError as error:
        return str(error)
    return ""


def facts(path: str) -> list[float]:
    """The numbers of one file; zeros if it is no video that can be opened."""
    av = _av()
    try:
        with av.open(path) as video:
            track = video.streams.video[0]
            context = track.codec_context
            rate = float(track.average_rate or 0)
            seconds = float(video.duration or 0) / 1e6
            names = (context.name, context.pix_fmt or "", video.format.name)
            sizes = (rate, context.width, context.height, seconds, float(video.bit_rate or 0))
    except (av.error.FFmpegError, OSError, IndexError):
        return [0.0] * (3 * CODES + 5)
    return [code for name in names for code in one_of(name, CODES)] + [math.log(max(s, 1e-3)) for s in sizes]


def features(data: DataSet, index: Tensor, x: Tensor | None, cfg: Config) -> Tensor:
    return torch.tensor([facts(data.paths[i]) for i in index.tolist()])
