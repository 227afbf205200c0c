"""Near-duplicate images of a source: found once, from the files themselves or from the pixels in memory, and told."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from unskew.core import checkpoint, progress
from unskew.core.fetch import cache
from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.readers.files import _FAILURES, to_rgb
from unskew.data.readers.opening import MAX_PIXELS, opened, shrunk, upright
from unskew.data.texts import Content, contents
from unskew.records import Duplicates
from unskew.stats import alike

MOST_ROWS = 200_000  # rows above which nobody looks
TOO_MANY = f"near-duplicates were not looked for: more than {MOST_ROWS:,} rows"
Thumbnail = NDArray[np.uint8]  # (3, 32, 32)
_CHUNK = 1024
_FEW = 64  # pictures that may be held before they are decoded
_WORTH_KEEPING = 1000  # files whose answer is kept in the cache; fewer are looked at again
_RULE = 2  # raised with every change to what counts as a near-duplicate


def of_files(paths: Sequence[str], content: Iterable[bytes] = (), threads: int = 8, most: int = MAX_PIXELS) -> Tensor:
    """(N,) the first row of each row's near-duplicates, -1 for none. `content` stands for the files in the key of the cache.

    The files are read here whether or not the inputs are in memory, and in the same way: splits must not depend on `data.mode`,
    nor on `data.size`.
    """
    digest, empty = hashlib.sha256(b"%d " % _RULE), True
    for piece in content:
        digest.update(piece)
        empty = False
    kept = cache() / "duplicates" / f"{digest.hexdigest()[:32]}.safetensors"
    if len(paths) >= _WORTH_KEEPING and not empty and kept.is_file():
        return checkpoint.read(kept)[0]["duplicate_of"]
    whole = _Gathering(len(paths))
    with progress.bar("looking for near-duplicates", len(paths)) as advance, ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(paths), _CHUNK):
            pictures: list[Thumbnail | None] = []
            for few in range(start, min(start + _CHUNK, len(paths)), _FEW):
                several = contents(paths, range(few, min(few + _FEW, start + _CHUNK, len(paths))))
                pictures += pool.map(lambda content: thumbnail(content, most), several)
            blank = np.zeros((3, alike.GREY, alike.GREY), dtype=np.uint8)
            stacked = np.stack([blank if p is None else p for p in pictures])
            whole.add(alike.looks(stacked, np.array([p is not None for p in pictures])))
            advance(len(pictures))
    found = torch.from_numpy(alike.near_duplicates(whole.looks))
    if len(paths) >= _WORTH_KEEPING and not empty:
        checkpoint.save(kept, {"duplicate_of": found}, {})
    return found


class _Gathering:
    """What is kept of all pictures, filled piece by piece: pieces that are joined at the end would need twice the memory."""

    def __init__(self, rows: int) -> None:
        small = np.zeros((rows, 3 * alike.SMALL * alike.SMALL), dtype=np.uint8)
        self.looks = alike.Looks(np.zeros(rows, dtype=np.uint64), small, np.zeros(rows, dtype=bool))
        self.done = 0

    def add(self, piece: alike.Looks) -> None:
        rows = slice(self.done, self.done + len(piece.code))
        self.looks.code[rows], self.looks.small[rows], self.looks.usable[rows] = piece.code, piece.small, piece.usable
        self.done = rows.stop


def thumbnail(path: Content, most: int = MAX_PIXELS) -> Thumbnail | None:
    """A file's picture as (3, 32, 32) bytes, decoded no larger than it must be; None if it cannot be decoded."""
    try:
        with opened(path, most) as picture:
            picture.draft("RGB", (2 * alike.GREY, 2 * alike.GREY))
            image = to_rgb(upright(shrunk(picture, 2 * alike.GREY)))
            image = image.resize((alike.GREY, alike.GREY), Image.Resampling.BOX if min(image.size) >= 64 else _SMOOTH)
            return np.asarray(image).transpose(2, 0, 1)
    except _FAILURES:
        return None


_SMOOTH = Image.Resampling.BILINEAR


def of_pixels(x: Tensor, readable: Tensor | None = None) -> Tensor:
    """The same for images (N, C, H, W) in memory, of bytes or numbers."""
    fine = torch.ones(len(x), dtype=torch.bool) if readable is None else readable
    low, high = (0.0, 255.0) if x.dtype == torch.uint8 else (float(x.min()), float(x.max()))
    chunks = ((x[k : k + _CHUNK], fine[k : k + _CHUNK]) for k in range(0, len(x), _CHUNK))
    return _of_chunks(chunks, low, high)


def of_inputs(inputs: Inputs, rows: int) -> Tensor:
    """The same for images of bytes that are decoded on demand."""
    return _of_chunks((inputs.rows(chunk) for chunk in torch.split(torch.arange(rows), _CHUNK)), 0.0, 255.0)


def _of_chunks(chunks: Iterable[tuple[Tensor, Tensor]], low: float, high: float) -> Tensor:
    parts = []
    for x, fine in chunks:
        part = (x.float() - low) * (255 / max(high - low, 1e-12))
        part = part if part.shape[1] == 3 else part.mean(1, keepdim=True).expand(-1, 3, -1, -1)
        small = F.interpolate(part, size=(alike.GREY, alike.GREY), mode="bilinear", align_corners=False, antialias=True)
        parts.append(alike.looks(small.round().clamp(0, 255).byte().numpy(), fine.numpy()))
    return torch.from_numpy(alike.near_duplicates(alike.joined(parts)))


def of_data(data: DataSet) -> Tensor | None:
    """Those of a data set, as found when it was read, or found now; None if its rows are not images or too many."""
    wanted = data.reading is None or data.reading.duplicates
    if data.duplicate_of is not None or not wanted or len(data.shape) != 3 or len(data) > MOST_ROWS:
        return data.duplicate_of
    if data.paths:
        most = MAX_PIXELS if data.reading is None else int(data.reading.max_pixels)
        return of_files(data.paths, [data.fingerprint.encode()], most=most)
    return of_pixels(data.inputs.x, data.inputs.readable) if isinstance(data.inputs, Memory) else None


def disagrees(duplicate_of: Tensor, y: Tensor) -> Tensor:
    """(N,) whether the row's near-duplicates have another label than the first of them.

    >>> disagrees(torch.tensor([0, 0, -1, 3, 3]), torch.tensor([1, 0, 0, 1, 1])).tolist()
    [True, True, False, False, False]
    """
    first = duplicate_of.clamp(min=0)
    differs = (y != y[first]) if y.ndim == 1 else (y != y[first]).any(1)
    return torch.isin(duplicate_of, duplicate_of[differs & (duplicate_of >= 0)]) & (duplicate_of >= 0)


def told(duplicate_of: Tensor, y: Tensor, given: Tensor) -> Duplicates:
    """The sets in numbers; `given` are the splits as the source has them (a carved split counts as the one it comes from)."""
    rows = (duplicate_of >= 0).nonzero().flatten()
    sets = torch.unique(duplicate_of[rows])
    disagree = torch.unique(duplicate_of[disagrees(duplicate_of, y)])
    cross = torch.unique(duplicate_of[disagrees(duplicate_of, given)])
    return Duplicates(sets=len(sets), rows=len(rows), disagreeing=len(disagree), crossing=len(cross))
