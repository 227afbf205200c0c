r"""encoder: what the encoder left behind: format, JPEG tables and sampling in the header, or blocks of 8 pixels in the picture.

.. math::  b_k = \log \frac{\mathrm{med}_j\,|x_{8j+k} - x_{8j+k-1}|}{\mathrm{mean}_l\,\mathrm{med}_j\,|x_{8j+l} - x_{8j+l-1}|},
           \qquad z_f = P\big(|c_f| < \tfrac12\big) - P\big(|c_f'| < \tfrac12\big)

`header` reads format, colour mode, sampling, and the tables as qualities and as one of sixteen codes: nothing of that is in the picture.
`blocks` sees an earlier save: b are the steps across columns and rows at each place k within a block; c_f the coefficients of 8 x 8
blocks in four bands of frequency f, c' those of blocks that begin 4 pixels later, which no encoder used: coefficients that were rounded
to 0 stay near 0 after decoding and saving again.

Source: Fan and de Queiroz, "Identification of bitmap compression history: JPEG detection and quantizer estimation", IEEE
Transactions on Image Processing 2003; the tables of ITU-T T.81, annex K.
Differs: numbers for a linear reader instead of a likelihood.
"""

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Header, Picture
from unskew.representations._contract import files_only, pictures_only
from unskew.representations.detail import TILES, pooling

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS = ({"part": "header"}, {"part": "blocks"})
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
CODES = 16  # that names of tables and of extras are mixed into
BANDS = 4


@dataclass(frozen=True)
class Config:
    part: Literal["header", "blocks"] = "header"  # what the file's header says, or traces in the picture


def phrase(cfg: Config) -> str:
    return "the file's format and compression" if cfg.part == "header" else "traces of an earlier compression"


def foreign(cfg: Config) -> bool:
    return cfg.part == "header"


def applies(data: DataSet, cfg: Config) -> str:
    return files_only(data) if cfg.part == "header" else pictures_only(data, 32)


def one_of(text: str, codes: int = CODES) -> list[float]:
    """A text as one of a few codes, the same in every run.

    >>> one_of("", 2), sum(one_of("4:2:0", 8))
    ([0.0, 0.0], 1.0)
    """
    return [float(bool(text) and zlib.crc32(text.encode()) % codes == k) for k in range(codes)]


def of_header(header: Header | None) -> list[float]:
    """Format, mean steps of the first two tables on a log scale, tables and sampling as codes, and other marks of the encoder."""
    header = header or Header()
    steps = [float(np.log(np.mean(t))) for t in header.tables[:2]]
    steps += [steps[0] if steps else 0.0] * (2 - len(steps))
    return [
        *(float(header.kind == f) for f in FORMATS), *steps, *one_of(repr(header.tables) if header.tables else ""),
        *one_of(header.sampling, 4), *one_of(header.mode, 4), *one_of(" ".join(header.extras), 8), float(header.progressive),
    ]  # fmt: skip


def _phases(steps: Floats) -> Floats:
    """Mean step at each place of a block against the mean of all, on a log scale; the place between two blocks is first."""
    length = len(steps) // 8 * 8
    if not length:
        return np.zeros(8, dtype=np.float32)
    means = np.roll(np.median(steps[:length].reshape(-1, 8), axis=0) + 0.02, 1)  # step j lies between pixels j and j + 1
    phases: Floats = np.log(means / means.mean())
    return phases


_WAVES = np.cos(np.outer(np.arange(8), 2 * np.arange(8) + 1) * np.pi / 16) / 2
_DCT = np.where(np.arange(8)[:, None] == 0, _WAVES / np.sqrt(2), _WAVES).astype(np.float32)  # orthonormal
_RADIUS = np.add.outer(np.arange(8), np.arange(8))
_BAND = np.where(_RADIUS == 0, -1, np.minimum((_RADIUS - 1) // 3, BANDS - 1))


_MEMBER = np.equal.outer(_BAND.ravel(), np.arange(BANDS)).astype(np.float32)
_OF_BAND = _MEMBER / _MEMBER.sum(0)  # (64, bands)


def _usual(values: Floats) -> float:
    """The median over 4 x 4 parts of the mean of each, so that marks in a few of them do not count; the mean of a small picture."""
    if min(values.shape) < 4:
        return float(values.mean())
    return float(np.median(pooling(values.shape[0], 4) @ values @ pooling(values.shape[1], 4).T))


def _over_parts(steps: Floats, axis: int) -> Floats:
    """Mean along an axis in six parts, and the median of the six."""
    pool = pooling(steps.shape[axis], TILES)
    usual: Floats = np.median(pool @ steps if axis == 0 else pool @ steps.T, axis=0)
    return usual


def blocks(grey: Floats) -> Floats:
    """Share of coefficients near 0 in each band of frequency, less that in blocks that begin 4 pixels later."""
    shares = []
    for start in (0, 4):
        part = grey[start:, start:]
        rows, columns = part.shape[0] // 8, part.shape[1] // 8
        if not rows or not columns:
            return np.zeros(BANDS, dtype=np.float32)
        tiles = part[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8)
        coefficients = _DCT @ (tiles.swapaxes(1, 2) @ _DCT.T)
        near = (np.abs(coefficients) < 0.5).reshape(rows, columns, 64) @ _OF_BAND
        shares.append([_usual(near[:, :, k]) for k in range(BANDS)])
    on, off = np.array(shares, dtype=np.float32)
    difference: Floats = on - off
    return difference


def look(picture: Picture, cfg: Config) -> Floats:
    if cfg.part == "header":
        return np.array(of_header(picture.header), dtype=np.float32)
    grey = picture.grey
    across, down = _over_parts(np.abs(grey[:, 1:] - grey[:, :-1]), 0), _over_parts(np.abs(grey[1:] - grey[:-1]), 1)
    return np.concatenate([_phases(across), _phases(down), blocks(grey)])
