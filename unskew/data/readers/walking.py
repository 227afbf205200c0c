"""Files below folders, with size and time of change: folders are read in parallel, and no file is opened."""

import errno
import os
import stat
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unskew.core import progress
from unskew.data.readers.listing import EXTENSIONS
from unskew.data.texts import Texts

THREADS = 8
CHUNK = 4096  # files that a thread asks about at a time
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)  # what pathlib takes for "there is no such file"


@dataclass(frozen=True)
class Found:
    """Files in order: their paths, sizes in bytes (-1: no file) and times of change in nanoseconds."""

    paths: Texts
    size: NDArray[np.int64]
    mtime: NDArray[np.int64]


def images_in(folders: Sequence[Path], root: Path) -> list[Found]:
    """The image files below each folder, relative to `root`, in the order of `listing.images_below`."""
    with progress.bar("listing", len(folders)) as advance, ThreadPoolExecutor(THREADS) as pool:

        def one(folder: Path) -> Found:
            found = _below(folder, root, lambda name: os.path.splitext(name)[1].lower() in EXTENSIONS)
            advance(1, f"{len(found.paths)} in {folder.name}")
            return found

        return list(pool.map(one, folders))


def _below(folder: Path, root: Path, wanted: Callable[[str], bool]) -> Found:
    paths: list[str] = []
    size, mtime = array("q"), array("q")
    in_order: Callable[[str], str] = str if os.sep == "/" else os.path.normcase

    def look(place: str, relative: str) -> None:
        """A folder's own entries in the order of their names, folders in their place: the order of paths compared by parts."""
        names, sizes, mtimes = [], array("q"), array("q")  # numbers in arrays: a folder may hold a million files
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    known = _known(entry, wanted)
                    if known is not None:
                        names.append(entry.name)
                        sizes.append(known[0])
                        mtimes.append(known[1])
        except PermissionError:  # as pathlib does
            return
        for k in sorted(range(len(names)), key=lambda k: in_order(names[k])):
            path = f"{relative}{os.sep}{names[k]}"
            if sizes[k] < 0:
                look(os.path.join(place, names[k]), path)
            else:
                paths.append(path)
                size.append(sizes[k])
                mtime.append(mtimes[k])

    look(str(folder), os.path.relpath(folder, root))
    return Found(Texts.of(paths), np.array(size, dtype=np.int64), np.array(mtime, dtype=np.int64))


def _known(entry: "os.DirEntry[str]", wanted: Callable[[str], bool]) -> tuple[int, int] | None:
    """Size and time of a file that is wanted, (-1, 0) of a folder, None of anything else."""
    if entry.is_dir(follow_symlinks=False):
        return -1, 0
    if not wanted(entry.name) or entry.name.startswith("."):
        return None
    try:
        known = entry.stat()
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        return None
    return (known.st_size, known.st_mtime_ns) if stat.S_ISREG(known.st_mode) else None


def together(parts: Sequence[Found]) -> Found:
    return Found(
        Texts.joined([p.paths for p in parts]), np.concatenate([p.size for p in parts]), np.concatenate([p.mtime for p in parts])
    )


def measured(paths: Texts) -> Found:
    """Size and time of each of these files; -1 for one that is not there, or is not a file."""
    size = np.full(len(paths), -1, dtype=np.int64)
    mtime = np.zeros(len(paths), dtype=np.int64)

    def ask(start: int) -> None:
        for k in range(start, min(start + CHUNK, len(paths))):
            try:
                known = os.stat(paths[k])
            except (OSError, ValueError):  # ValueError: a NUL in the path
                continue
            if stat.S_ISREG(known.st_mode):
                size[k], mtime[k] = known.st_size, known.st_mtime_ns

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(ask, range(0, len(paths), CHUNK)))
    return Found(paths, size, mtime)
