"""What is known of every file of a source, written once into the cache: a later verb opens only what has changed.

A manifest is a folder of Parquet parts, `CACHE/manifests/KEY/00000.parquet` and so on, with a line per row of the source in its order:

==================  ==============================================================================================================
path                relative to the source's folder
size, mtime         bytes, and the time of change in nanoseconds: a file that differs in either is opened again. Of a clip in a folder of
                    frames, those of its first frame, or the time of the folder if that is later
hash                SHA-256 of size, start, middle and end
width, height       as the header has them; 0 if it cannot be read, and for clips
turned              whether its EXIF data turn the picture by a quarter
reason              why its header cannot be read; empty for a picture that is fine
class, split        as the source was last read, if it has them, followed by its bias columns
==================  ==============================================================================================================

A file that changed within the two seconds before it was looked at is opened again next time, as it may have changed once more without
another time of change; so is one whose header could not be read.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.fetch import cache
from unskew.core.files import whole_folder
from unskew.core.tables import read_parquet
from unskew.core.threads import in_order
from unskew.data.readers.opening import FAILURES, MAX_PIXELS
from unskew.data.texts import Content, Texts

VERSION = "1"
KEPT = 1000  # files from which a manifest is kept; fewer are looked at again in no time
PART = 65_536  # rows of a part
RACY = 2_000_000_000  # nanoseconds: the coarsest clock of a file system in use
_CHUNK = 64  # files that a thread opens at a time
_FIXED = ("path", "size", "mtime", "hash", "width", "height", "turned", "reason")


class Look(NamedTuple):
    """What opening a file tells: its digest (empty if it cannot be opened) and what its header says."""

    digest: bytes = b""
    width: int = 0
    height: int = 0
    turned: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Facts:
    """What is known of the files of all rows."""

    hash: NDArray[np.uint8]  # (N, 32); zeros for a file that cannot be opened
    width: NDArray[np.int32]
    height: NDArray[np.int32]
    turned: NDArray[np.bool_]
    reason: dict[int, str] = field(default_factory=dict)  # by row, of headers that cannot be read

    @classmethod
    def empty(cls, n: int) -> "Facts":
        width, height = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        return cls(np.zeros((n, 32), dtype=np.uint8), width, height, np.zeros(n, dtype=bool), {})

    def put(self, row: int, look: Look) -> None:
        if look.digest:
            self.hash[row] = np.frombuffer(look.digest, dtype=np.uint8)
        self.width[row], self.height[row], self.turned[row] = look.width, look.height, look.turned
        if look.reason:
            self.reason[row] = look.reason

    def broken(self, most: int = MAX_PIXELS) -> dict[int, str]:
        """The rows that cannot be used, with the reason: a header that cannot be read, or more than `most` pixels."""
        large = (self.width.astype(np.int64) * self.height > most).nonzero()[0].tolist()
        sizes = {k: f"{self.width[k]}x{self.height[k]} pixels, more than data.max_pixels={most} allows" for k in large}
        return dict(sorted((sizes | self.reason).items()))

    def of_size(self, side: tuple[int, int]) -> NDArray[np.bool_]:
        """(N,) whether a picture, as it is seen, has this height and width."""
        high, wide = self._seen()
        same: NDArray[np.bool_] = (high == side[0]) & (wide == side[1])
        return same

    def _seen(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return np.where(self.turned, self.width, self.height), np.where(self.turned, self.height, self.width)

    def sizes(self, skip: Sequence[int] = ()) -> set[tuple[int, int]]:
        """All (height, width) that there are, as the pictures are seen, apart from these rows."""
        high, wide = self._seen()
        kept = np.ones(len(high), dtype=bool)
        kept[list(skip)] = False
        pairs = np.unique(high[kept].astype(np.int64) << 32 | wide[kept])
        return {(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in pairs}

    def content(self, names: Texts) -> Iterator[bytes]:
        """Names and digests of all rows, piece by piece: what fingerprints are made of."""
        for start in range(0, len(names), PART):
            some, digest = names[start : start + PART], self.hash[start : start + PART]
            length = np.diff(some.starts)
            ends = np.cumsum(length + 33)
            begins = ends - length - 33
            piece = np.zeros(int(ends[-1]), dtype=np.uint8)  # name, a zero, digest; then the next
            piece[np.repeat(begins - some.starts[:-1], length) + np.arange(len(some.raw))] = some.raw
            piece[(ends - 32)[:, None] + np.arange(32)] = digest
            yield piece.tobytes()


def glimpse(path: str, bytes_each: int = 4096) -> bytes:
    """Digest of a file's size, start, middle and end: enough to notice a replaced file, cheap enough for every file."""
    with open(path, "rb") as file:
        return glimpse_of(file, os.fstat(file.fileno()).st_size, bytes_each)


def glimpse_of(file: IO[bytes], size: int, bytes_each: int = 4096) -> bytes:
    parts = [b"%d" % size]
    for place in sorted({0, max(0, size // 2 - bytes_each // 2), max(0, size - bytes_each)}):
        file.seek(place)
        parts.append(file.read(bytes_each))
    return hashlib.sha256(b"|".join(parts)).digest()


def look_at(content: Content) -> Look:
    """Open a file once, for its digest and its header; nothing is decoded."""
    try:
        if isinstance(content, str):
            with open(content, "rb") as file:
                return _look(file, os.fstat(file.fileno()).st_size)
        size = content.seek(0, os.SEEK_END)
        return _look(content, size)
    except OSError as error:
        return Look(reason=in_words(error))


def _look(file: IO[bytes], size: int) -> Look:
    digest = glimpse_of(file, size)
    file.seek(0)
    try:
        with Image.open(file) as image:
            return Look(digest, image.width, image.height, is_turned(image))
    except FAILURES as error:
        return Look(digest, reason=in_words(error))


def is_turned(image: Image.Image) -> bool:
    """Whether the EXIF data rotate the image by a quarter turn; damaged data do not."""
    try:
        return int(image.getexif().get(0x0112, 1)) >= 5
    except FAILURES:
        return False


def in_words(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return "not an image" if isinstance(error, UnidentifiedImageError) else text


def place_of(source: str) -> Path:
    """The folder of a source's manifest."""
    return cache() / "manifests" / hashlib.sha256(os.fsencode(source)).hexdigest()[:32]


def facts_of(
    source: str,
    names: Texts,
    stored: Texts,
    size: NDArray[np.int64],
    mtime: NDArray[np.int64],
    labels: pl.DataFrame,
    threads: int = 8,
    look: Callable[[Content], "Look"] | None = None,
) -> Facts:
    """The facts of all rows: those of the manifest where size and mtime are the same, else from the file, and then kept.

    `names` are the rows' paths in the manifest, `stored` what is opened; `labels` are class, split and bias columns. `look` opens a file
    that is no picture.
    """
    place, started = place_of(source), time.time_ns()
    facts = Facts.empty(len(names))
    fresh, whole = _recall(place, names, size, mtime, labels, facts) if len(names) >= KEPT else (None, False)
    rows = np.arange(len(names)) if fresh is None else (~fresh).nonzero()[0]
    look_at_all(stored, rows.tolist(), facts.put, threads, look)
    if len(names) >= KEPT and not (whole and not len(rows)) and names.is_utf8:
        _keep(place, source, names, size, mtime, labels, facts, started)
    return facts


def look_at_all(
    stored: Texts,
    rows: Sequence[int],
    put: Callable[[int, Look], None],
    threads: int = 8,
    look: Callable[[Content], Look] | None = None,
) -> None:
    """Open these rows, in threads if that is quicker, and hand on what each tells."""
    one = look or look_at

    def several(some: Sequence[int]) -> list[Look]:
        return [one(content) for content in stored.contents(some)]

    chunks = [rows[k : k + _CHUNK] for k in range(0, len(rows), _CHUNK)]
    with progress.bar("opening files", len(rows)) as advance:
        for some, looks in zip(chunks, in_order(several, chunks, threads, each=_CHUNK), strict=True):
            for row, seen in zip(some, looks, strict=True):
                put(row, seen)
            advance(len(some))


def parts_of(source: str) -> list[Path]:
    """The parts of a source's manifest, in order; none if it has none."""
    return sorted(place_of(source).glob("[0-9]*.parquet"))


def _recall(
    place: Path, names: Texts, size: NDArray[np.int64], mtime: NDArray[np.int64], labels: pl.DataFrame, facts: Facts
) -> tuple[NDArray[np.bool_] | None, bool]:
    """Fill in what the manifest knows: which rows it does, and whether it says of them what would be written again."""
    fresh = np.zeros(len(names), dtype=bool)
    try:
        parts = [read_parquet(path) for path in sorted(place.glob("[0-9]*.parquet"))]
    except (UserError, OSError):  # damaged, or just replaced by another process
        return None, False
    if not parts or any(about.get("version") != VERSION for _, about in parts):
        return None, False
    written = int(parts[0][1].get("written", 0))
    kept = pl.concat([frame for frame, _ in parts], how="diagonal_relaxed")
    ours = pl.DataFrame([names.series("path")]) if names.is_utf8 else pl.DataFrame({"path": []})
    same = len(kept) == len(ours) and bool((kept["path"] == ours["path"]).all())
    if not same:
        known = kept.unique("path", keep="first", maintain_order=True)
        kept = ours.join(known, on="path", how="left", maintain_order="left")
        if len(kept) != len(names):
            return None, False
    columns = {name: kept[name].fill_null(0).to_numpy() for name in ("size", "mtime", "width", "height")}
    fresh = (columns["size"] == size) & (columns["mtime"] == mtime) & (mtime < written - RACY)
    fresh &= (kept["reason"].fill_null("?") == "").to_numpy()
    digests = kept["hash"].fill_null(bytes(32)).to_list()
    facts.hash[:] = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 32)
    facts.width[:], facts.height[:] = columns["width"], columns["height"]
    facts.turned[:] = kept["turned"].fill_null(False).to_numpy()
    told = kept.select([c for c in kept.columns if c not in _FIXED])
    return fresh, same and told.columns == labels.columns and told.equals(labels)


def _keep(
    place: Path,
    source: str,
    names: Texts,
    size: NDArray[np.int64],
    mtime: NDArray[np.int64],
    labels: pl.DataFrame,
    facts: Facts,
    started: int,
) -> None:
    """Write the manifest in place of the old one. It saves time only: a cache that cannot be written stops nobody."""
    about = {"version": VERSION, "written": str(started), "source": source}
    try:
        with whole_folder(place) as part:
            for number, start in enumerate(range(0, len(names), PART)):
                rows = slice(start, start + PART)
                frame = pl.DataFrame(
                    [
                        names[rows].series("path"),
                        pl.Series("size", size[rows]),
                        pl.Series("mtime", mtime[rows]),
                        pl.Series("hash", [row.tobytes() for row in facts.hash[rows]], dtype=pl.Binary),
                        pl.Series("width", facts.width[rows]),
                        pl.Series("height", facts.height[rows]),
                        pl.Series("turned", facts.turned[rows]),
                        pl.Series("reason", [facts.reason.get(k, "") for k in range(len(names))[rows]], dtype=pl.String),
                    ]
                )
                frame = frame.hstack(labels[rows].get_columns()) if labels.width else frame
                frame.write_parquet(part / f"{number:05d}.parquet", metadata=about)
    except OSError as error:
        progress.say(f"the manifest of {source} could not be kept ({error.strerror or error})")


def labels_of(
    y: NDArray[np.int64] | None,
    classes: Sequence[str],
    split: NDArray[np.int64],
    splits: Sequence[str],
    bias: Sequence[tuple[str, NDArray[np.int64], Sequence[str]]] = (),
) -> pl.DataFrame:
    """Class, split and bias columns of all rows, by name; `y` is None where rows have several labels."""
    columns = [] if y is None else [_named("class", y, classes)]
    columns.append(_named("split", split, splits))
    taken = {*_FIXED, "class", "split"}
    columns += [_named(name if name not in taken else f"bias {name}", codes, values) for name, codes, values in bias]
    return pl.DataFrame(columns)


def _named(name: str, codes: NDArray[np.int64], values: Sequence[str]) -> pl.Series:
    """Codes as the names they stand for, empty for -1."""
    words = pl.Series(name, [*values, None], dtype=pl.String)
    return words.gather(pl.Series(np.where(codes < 0, len(values), codes))).alias(name)
