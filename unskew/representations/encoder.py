r"""encoder: what the encoder left behind: format, JPEG tables and sampling in the header, blocks of 8 pixels, or gaps of an earlier save.

.. math::  b_k = \log \frac{\mathrm{med}_j\,|x_{8j+k} - x_{8j+k-1}|}{\mathrm{mean}_l\,\mathrm{med}_j\,|x_{8j+l} - x_{8j+l-1}|},
           \qquad z_f = P\big(|c_f| < \tfrac12\big) - P\big(|c_f'| < \tfrac12\big), \qquad
           g_f = \frac{\sum_k \big(h_{k+1} - h_k - 2\sqrt{h_{k+1} + h_k + 1}\big)_+}{\sum_k h_k}

`header` reads format, colour mode, sampling, and the tables as qualities and as one of sixteen codes: nothing of that is in the picture.
`blocks` sees an earlier save: b are the steps across columns and rows at each place k within a block; c_f the coefficients of 8 x 8
blocks in four bands of frequency f, c' those of blocks that begin 4 pixels later, which no encoder used: coefficients that were rounded
to 0 stay near 0 after decoding and saving again. They also show how much detail a picture has, so only the user can say what they mean.
`twice` cannot be content: h_k counts coefficients of one frequency that are k steps of the file's own table from 0. In a photograph
that was saved once these counts fall with k; an earlier save with coarser steps leaves gaps, and g is how far counts rise again, beyond
twice their standard error. It is 0 below 2 %, and where blocks that begin 4 pixels later have gaps too (drawings).

Source: Fan and de Queiroz, "Identification of bitmap compression history: JPEG detection and quantizer estimation", IEEE
Transactions on Image Processing 2003; the tables of ITU-T T.81, annex K.
Differs: numbers for a linear reader instead of a likelihood.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Header, Picture, median, pooling, pooling_across
from unskew.representations._contract import files_only, pictures_only

PIXELS, CONTENT, PROBE = True, False, True
VARIANTS = ({"part": "header"}, {"part": "blocks"}, {"part": "twice"})
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
CODES = 16  # that names of tables and of extras are mixed into
BANDS = 4
TILES = 6  # along each side
COUNTED = 24  # steps of a table from 0 whose coefficients are counted
RISE = 0.02  # of the counts: less is chance


@dataclass(frozen=True)
class Config:
    part: Literal["header", "blocks", "twice"] = (
        "header"  # what the file's header says, blocks in the picture, or gaps of an earlier save
    )


_PHRASES = {
    "header": "the file's format and compression",
    "blocks": "blocks of an earlier compression",
    "twice": "an earlier JPEG save",
}


def phrase(cfg: Config) -> str:
    return _PHRASES[cfg.part]


def foreign(cfg: Config) -> bool:
    return cfg.part != "blocks"


def applies(data: DataSet, cfg: Config) -> str:
    return files_only(data) if cfg.part == "header" else pictures_only(data, 32)


def one_of(text: str, codes: int = CODES) -> list[float]:
    """A text as one of a few codes, the same in every run.

    >>> one_of("", 2), sum(one_of("4:2:0", 8))
    ([0.0, 0.0], 1.0)
    """
    mine = zlib.crc32(text.encode()) % codes if text else -1
    return [float(mine == k) for k in range(codes)]


@lru_cache(maxsize=256)
def _of_tables(tables: tuple[tuple[int, ...], ...]) -> tuple[float, ...]:
    """Mean steps of the first two tables on a log scale, and all as a code: most files of a set share them."""
    steps = [float(np.log(np.mean(t))) for t in tables[:2]]
    steps += [steps[0] if steps else 0.0] * (2 - len(steps))
    return *steps, *one_of(repr(tables) if tables else "")


def of_header(header: Header | None) -> list[float]:
    """Format, mean steps of the first two tables on a log scale, tables and sampling as codes, and other marks of the encoder."""
    header = header or Header()
    return [
        *(float(header.kind == f) for f in FORMATS), *_of_tables(header.tables),
        *one_of(header.sampling, 4), *one_of(header.mode, 4), *one_of(" ".join(header.extras), 8), float(header.progressive),
    ]  # fmt: skip


def _phases(steps: Floats) -> Floats:
    """Mean step at each place of a block against the mean of all, on a log scale; the place between two blocks is first."""
    length = len(steps) // 8 * 8
    if not length:
        return np.zeros(8, dtype=np.float32)
    means = np.roll(median(steps[:length].reshape(-1, 8), axis=0) + 0.02, 1)  # step j lies between pixels j and j + 1
    phases: Floats = np.log(means / means.mean())
    return phases


_RADIUS = np.add.outer(np.arange(8), np.arange(8))
_BAND = np.where(_RADIUS == 0, -1, np.minimum((_RADIUS - 1) // 3, BANDS - 1))


_MEMBER = np.equal.outer(_BAND.ravel(), np.arange(BANDS)).astype(np.float32)
_OF_BAND = _MEMBER / _MEMBER.sum(0)  # (64, bands)


def _usual(values: Floats) -> Floats:
    """(16, 64) means of the blocks (rows, 8, columns, 8) in each of 4 x 4 parts; of a small picture (1, 64) of all."""
    rows, _, columns, _ = values.shape
    if min(rows, columns) < 4:
        plain: Floats = values.mean((0, 2)).reshape(1, 64)
        return plain
    lines = (pooling(rows, 4) @ values.reshape(rows, -1)).reshape(4, 8, columns, 8)
    # Columns last, in one product: one for every line of blocks would take most of the time.
    by_column: NDArray[Any] = lines.swapaxes(2, 3).reshape(-1, columns) @ pooling_across(columns, 4)  # (4 * 64, 4)
    return by_column.reshape(4, 64, 4).swapaxes(1, 2).reshape(16, 64)


def _over_parts(steps: Floats, axis: int) -> Floats:
    """Mean along an axis in six parts, and the median of the six."""
    if axis == 0:
        usual: Floats = median(pooling(len(steps), TILES) @ steps, axis=0)
    else:
        usual = median(steps @ pooling_across(steps.shape[1], TILES), axis=1)
    return usual


def blocks(found: Sequence[Floats]) -> Floats:
    """Share of coefficients near 0 in each band of frequency, less that in blocks that begin 4 pixels later: the median over
    4 x 4 parts of each, so that marks in a few of them do not count."""
    if not found[1].size:
        return np.zeros(BANDS, dtype=np.float32)
    on, off = (median(_usual((np.abs(one) < 0.5).astype(np.float32)) @ _OF_BAND, axis=0) for one in found)
    difference: Floats = on - off
    return difference


_LOW = [1, 8, 16, 9, 2]  # frequencies whose counts are put together: the five lowest, and the next nine
_NEXT = [3, 10, 17, 24, 32, 25, 18, 11, 4]


def rises(counts: NDArray[np.int64]) -> Floats:
    """By how much counts (..., k) rise with k, beyond twice the standard error, as a share of all; of few counts, of 20.

    >>> rises(np.array([[90, 60, 30, 10], [0, 0, 90, 0]])).tolist()
    [0.0, 0.7880...]
    """
    low, high = counts[..., :-1], counts[..., 1:]
    beyond: Floats = np.maximum(0, high - low - 2 * np.sqrt(high + low + 1)).sum(-1) / np.maximum(20, counts.sum(-1))
    return beyond


_BANDS = np.array([*_LOW, *_NEXT])


def levels(found: Sequence[Floats], table: Sequence[int]) -> NDArray[np.int64]:
    """(2, 14, 24) how many coefficients are 1, 2, ... steps of the file's table from 0, on the grid and 4 pixels beside it, by frequency;
    `table` has the steps of the file itself, if known."""
    step = np.array([max(1, table[k]) if len(table) == 64 else 1 for k in _BANDS], dtype=np.float32)
    both = [one[:, _BANDS // 8, :, _BANDS % 8].reshape(len(_BANDS), -1) for one in found]
    steps = np.concatenate(both, 1)
    steps /= step[:, None]
    np.abs(np.rint(steps, out=steps), out=steps)
    cells = np.minimum(steps, COUNTED + 1, out=steps).astype(np.int64)
    cells += (COUNTED + 2) * np.arange(len(_BANDS))[:, None]
    size = (COUNTED + 2) * len(_BANDS)
    cells[:, both[0].shape[1] :] += size
    counts: NDArray[np.int64] = np.bincount(cells.ravel(), minlength=2 * size).reshape(2, len(_BANDS), -1)[:, :, 1:-1]
    return counts


def twice(counts: NDArray[np.int64]) -> Floats:
    """(B, 4) gaps of an earlier save in two bands of frequency, and whether there are any, from the counts of `levels` (B, 2, 14, 24)."""
    rise = rises(counts)
    gaps_of = np.stack([rise[..., : len(_LOW)].mean(-1), rise[..., len(_LOW) :].mean(-1)], -1).astype(np.float32)
    on, off = gaps_of[:, 0], gaps_of[:, 1]
    gaps = np.where(off < RISE, np.maximum(0, on - RISE), 0)
    return np.concatenate([gaps, gaps > 0], 1).astype(np.float32)


def note(picture: Picture, cfg: Config) -> NDArray[Any]:
    if cfg.part == "header":
        return np.array(of_header(picture.header), dtype=np.float32)
    if cfg.part == "twice":
        return levels(picture.blocks, picture.header.tables[0] if picture.header and picture.header.tables else ())
    across, down = _over_parts(picture.steps.size_across, 0), _over_parts(picture.steps.size_down, 1)
    return np.concatenate([_phases(across), _phases(down), blocks(picture.blocks)])


def finish(noted: NDArray[Any], cfg: Config) -> Floats:
    return twice(noted) if cfg.part == "twice" else noted


def look(picture: Picture, cfg: Config) -> Floats:
    numbers: Floats = finish(note(picture, cfg)[None], cfg)[0]
    return numbers
