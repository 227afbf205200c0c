"""Rows of numbers in a file: read by slices or by row numbers, never held as a whole."""

import io
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unskew.core.files import part_path, replacing, sweep

CHUNK = 65_536  # rows of a pass at once
NARROW = 64  # columns up to which they are so many; a pass over wider rows takes fewer at once
TOGETHER = 1_024  # scattered rows that are read at once where they lie close together
DENSE = 8  # as close as one row of so many
_NUMBER = count()
Numbers = np.ndarray[Any, np.dtype[np.float32]]
Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Matrix:
    """(n, D) numbers of 32 bits in files of the same rows, whose columns stand side by side. Indexing copies rows into memory."""

    files: tuple[tuple[Path, int], ...]  # each with its number of columns
    rows: int  # of the files
    chosen: Tensor | None = None  # rows of the files that this matrix has, in its order; None: all of them
    holders: tuple[object, ...] = ()  # temporary files are removed when the last matrix that holds them is gone

    def __len__(self) -> int:
        return self.rows if self.chosen is None else len(self.chosen)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), sum(width for _, width in self.files)

    @property
    def nbytes(self) -> int:
        return 4 * self.shape[0] * self.shape[1]

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        """The rows of a slice, of positions, or where a mask is true."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            assert step == 1  # nothing here skips rows
            rows = torch.arange(first, last) if self.chosen is None else self.chosen[first:last]
        else:
            rows = rows.nonzero().flatten() if rows.dtype == torch.bool else rows
            rows = rows if self.chosen is None else self.chosen[rows]
        parts = [_read(path, width, rows) for path, width in self.files]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def only(self, rows: Tensor) -> "Matrix":
        """The matrix of these rows alone: positions, or a mask. Nothing is read."""
        rows = rows.nonzero().flatten() if rows.dtype == torch.bool else rows
        return Matrix(self.files, self.rows, rows if self.chosen is None else self.chosen[rows], self.holders)


Rows = Tensor | Matrix  # (n, D): what can be sliced, indexed and measured


def _read(path: Path, width: int, rows: Tensor) -> Tensor:
    if not len(rows):
        return torch.zeros(0, width)
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows) and bool((rows.diff() == 1).all()):
        block = np.fromfile(path, dtype=np.float32, count=len(rows) * width, offset=4 * width * first)
        return torch.from_numpy(block.reshape(len(rows), width))
    values, order = np.empty((len(rows), width), dtype=np.float32), np.argsort(rows.numpy(), kind="stable")
    with open(path, "rb", buffering=0) as file:
        for part in slices(len(rows), TOGETHER):
            values[order[part]] = _read_ascending(file, width, rows.numpy()[order[part]])
    return torch.from_numpy(values)


def _read_ascending(file: io.FileIO, width: int, rows: Places) -> Numbers:
    """These rows of the file, which lie in ascending order.

    By reading, not by mapping: what the kernel maps around the rows counts as memory of the process, 1.8 GB where small samples of a
    file of 2.6 GB were read.
    """
    first, span = int(rows[0]), int(rows[-1] - rows[0]) + 1
    if span <= DENSE * len(rows):
        file.seek(4 * width * first)
        block: Numbers = np.frombuffer(file.read(4 * width * span), dtype=np.float32).reshape(span, width)
        return block[rows - first]
    pieces = []
    for place in (4 * width * rows).tolist():
        file.seek(place)
        pieces.append(file.read(4 * width))
    return np.frombuffer(b"".join(pieces), dtype=np.float32).reshape(len(rows), width)


def only(features: Rows, rows: Tensor) -> Rows:
    """Some rows, by positions or a mask: of a matrix in a file without reading it."""
    return features.only(rows) if isinstance(features, Matrix) else features[rows]


def beside(parts: Sequence[Rows]) -> Rows:
    """Columns side by side, of the same rows."""
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, Matrix) for part in parts):
        folder = next(part for part in parts if isinstance(part, Matrix)).files[0][0].parent
        stored = [part if isinstance(part, Matrix) and part.chosen is None else spilled(part, folder) for part in parts]
        files, holders = zip(*((one.files, one.holders) for one in stored), strict=True)
        return Matrix(sum(files, ()), stored[0].rows, None, sum(holders, ()))
    return torch.cat([part for part in parts if isinstance(part, Tensor)], 1)


class Column:
    """Values of many rows that come a few at a time, held as one tensor.

    Thousands of short tensors would lie between the large ones of a pass and keep the memory of those from being used again: 5 GB
    more for ten million rows.

    >>> column = Column()
    >>> [column.add(torch.tensor(part)) for part in ([1, 2], [3], [4, 5, 6])] and column.whole().tolist()
    [1, 2, 3, 4, 5, 6]
    """

    def __init__(self) -> None:
        self._held, self._rows = torch.empty(0), 0

    def __len__(self) -> int:
        return self._rows

    def add(self, part: Tensor) -> None:
        """The next rows; all parts are alike but for their number of rows."""
        end = self._rows + len(part)
        if not self._rows or end > len(self._held):
            wider = part.new_empty(max(end, 2 * self._rows), *part.shape[1:])
            if self._rows:
                wider[: self._rows] = self._held[: self._rows]
            self._held = wider
        self._held[self._rows : end] = part
        self._rows = end

    def whole(self) -> Tensor:
        return self._held[: self._rows]


def slices(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """The slices of a pass over so many rows.

    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(k, min(k + size, rows)) for k in range(0, rows, size))


def passes(rows: int, width: int) -> Iterator[slice]:
    """The slices of a pass over so many rows of so many columns: those in memory are about as many numbers whatever the width.

    >>> [part.stop for part in passes(100_000, 64)], [part.stop for part in passes(100_000, 128)]
    ([65536, 100000], [32768, 65536, 98304, 100000])
    """
    return slices(rows, CHUNK if width <= NARROW else max(1, CHUNK * NARROW // width))


@contextmanager
def writing(path: Path, width: int) -> Iterator[Callable[[Tensor], None]]:
    """Write a matrix block by block; the file appears when it is whole."""
    with replacing(path) as part, open(part, "wb") as file:
        yield lambda block: _append(file, block, width)
        file.flush()


def _append(file: object, block: Tensor, width: int) -> None:
    assert block.shape[1] == width
    np.ascontiguousarray(block.float().numpy()).tofile(file)  # type: ignore[arg-type]


class _Holder:
    """Whoever has one keeps a temporary file."""


class Spill:
    """Blocks of rows on their way into a matrix that is deleted with the process, or when nobody has it any more."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = folder / f"spilled-{next(_NUMBER)}"
        sweep(name)  # what killed processes left
        self.path, self.rows, self.width = part_path(name), 0, 0
        self.path.unlink(missing_ok=True)

    def add(self, block: Tensor) -> None:
        if not len(block):
            return
        self.width = block.shape[1]
        self.rows += len(block)
        with open(self.path, "ab") as file:
            _append(file, block, self.width)

    def matrix(self) -> Matrix:
        whole = Matrix(((self.path, self.width),), self.rows, holders=(_Holder(),))
        weakref.finalize(whole.holders[0], _remove, str(self.path))
        return whole

    def drop(self) -> None:
        """Give up: the pass failed."""
        self.path.unlink(missing_ok=True)


def _remove(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


def spilled(block: Rows, folder: Path) -> Matrix:
    """A block of rows as a matrix in a file."""
    spill = Spill(folder)
    for part in passes(*block.shape):
        spill.add(block[part])
    return spill.matrix()
