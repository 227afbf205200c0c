"""Many short texts, such as the paths of millions of rows, in two arrays: their bytes, and where each begins.

A list of Python strings takes some hundred bytes each, and worker processes that are forked copy it as soon as they look at it. Here
a text takes its own length and eight bytes, and is made into a string when it is asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

Content = str | IO[bytes]  # what Pillow opens: a path, or a file


class Texts(Sequence[str]):
    """A column of texts, each preceded by `before`.

    >>> column = Texts.of(["a.png", "b/c.png"], before="photos/")
    >>> column[1], len(column), column[::-1] == ("photos/b/c.png", "photos/a.png")
    ('photos/b/c.png', 2, True)
    """

    def __init__(self, raw: NDArray[np.uint8], starts: NDArray[np.int64], before: str = "") -> None:
        self.raw, self.starts, self.before = raw, starts, before

    @classmethod
    def of(cls, texts: Iterable[str], before: str = "") -> "Texts":
        """Text after text; what is not UTF-8 (a file's name may be anything) comes back as it was."""
        if isinstance(texts, Texts):
            return Texts(texts.raw, texts.starts, before + texts.before)
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=starts[1:])
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), starts, before)

    @staticmethod
    def joined(parts: "Sequence[Texts]") -> "Texts":
        """Columns one after the other; what precedes their texts becomes part of them."""
        plain = [part if not part.before else Texts.of(list(part)) for part in parts]
        ends = np.cumsum([0, *(len(part.raw) for part in plain)])
        starts = [part.starts[:-1] - part.starts[0] + end for part, end in zip(plain, ends[:-1], strict=True)]
        raw = [part.raw[part.starts[0] : part.starts[-1]] for part in plain]
        return Texts(np.concatenate([np.zeros(0, np.uint8), *raw]), np.append(np.concatenate([*starts, ends[:0]]), ends[-1]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> "Texts": ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            rows = range(len(self))[place]
            if rows.step != 1 or not rows:
                return self.take(rows)
            starts = self.starts[rows.start : rows.stop + 1]
            return Texts(self.raw[starts[0] : starts[-1]], starts - starts[0], self.before)
        k = range(len(self))[place]  # counts from the end, and raises beyond it
        return self.before + self.raw[self.starts[k] : self.starts[k + 1]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        raw, before = self.raw.tobytes(), self.before
        return (before + raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(self.starts.tolist()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str) or len(other) != len(self):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((self.before, self.raw.tobytes(), self.starts.tobytes()))

    def __repr__(self) -> str:
        return f"Texts({len(self)}{f': {self[0]!r}, ...' if len(self) else ''})"

    def take(self, places: Iterable[int]) -> "Texts":
        """The texts at these places, in this order."""
        return Texts.of([self[k] for k in places])

    @property
    def is_utf8(self) -> bool:
        """Whether tables and pages can hold these texts."""
        try:
            self.raw.tobytes().decode()
        except UnicodeDecodeError:
            return False
        return True

    def any_begins(self, character: str) -> bool:
        """Whether any of the texts begins with this character, apart from what precedes it."""
        begins = self.starts[:-1][self.starts[:-1] < self.starts[1:]]
        return bool((self.raw[begins] == ord(character)).any())

    def series(self, name: str) -> pl.Series:
        """The texts without what precedes them, as a column of a table."""
        raw, starts = self.raw.tobytes(), self.starts.tolist()
        return pl.Series(name, [raw[a:b].decode() for a, b in pairwise(starts)], dtype=pl.String)

    def contents(self, rows: Sequence[int]) -> Sequence[Content]:
        """What can be opened to read these rows: here the texts themselves, which are paths.

        Raises UserError if a store does not answer: that is not the fault of a picture.
        """
        return [self[k] for k in rows]


def contents(paths: Sequence[str], rows: Sequence[int]) -> Sequence[Content]:
    """What can be opened to read these rows of a column of paths, whatever holds them."""
    return paths.contents(rows) if isinstance(paths, Texts) else [paths[k] for k in rows]


def in_turn(paths: Sequence[str], rows: Sequence[int], few: int = 64) -> Iterator[Content]:
    """The same, a few at a time: pictures of a shard or a bucket are held in memory until they are decoded."""
    for start in range(0, len(rows), few):
        yield from contents(paths, rows[start : start + few])
