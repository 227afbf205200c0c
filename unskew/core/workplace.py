"""Where a verb puts its result: who may use the place, whether the work was done before, and how the result appears all at once.

Every verb goes the same way:

1. `identity` says what decides the result: settings, and the content of what goes in. Times, paths of intermediate files and the words
   of the command do not count.
2. `claim` compares it with what lies in the place: nothing, the same request, finished or not, or something else, which is refused.
3. `alone` locks the place for as long as the work lasts. The system frees the lock when the process ends, however it ends.
4. `whole_file` and `whole_folder` (core.files) put the result in place at once; what a killed process left is swept by the next.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.core.files import plain

PATIENCE = 8.0  # seconds: processes that decode images notice after five that the one they worked for was killed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Busy(UserError):
    """Another process is at work in the place."""


def identity(**parts: Any) -> dict[str, Any]:
    """What decides a result, as JSON knows it, so that it compares equal with what is read back from a file.

    >>> identity(seed=0, splits=("train",))
    {'seed': 0, 'splits': ['train']}
    """
    made: dict[str, Any] = plain(parts)
    return made


def digest(*parts: bytes | str) -> str:
    """SHA-256 of content, each part with its length, so that two ways of cutting the same bytes differ."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(raw).to_bytes(8, "big"))
        total.update(raw)
    return total.hexdigest()


def check_place(out: Path, verb: str, own: Iterable[str]) -> None:
    """Refuse a place that holds something else: a file, or a folder with none of the files (or beginnings of names) in `own`."""
    if out.is_file():
        raise UserError(f"{out} is a file and not {verb}; choose another --out")
    if out.is_dir():
        there = [path.name.lstrip(".") for path in out.iterdir()]
        if there and not any(name.startswith(tuple(own)) for name in there):
            raise UserError(f"{out} exists and is not {verb}; choose another --out")


def claim(out: Path, verb: str, there: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> bool:
    """Whether the request that lies in `out` is ours; False if there is none; another one is refused with the first difference."""
    if there is None:
        return False
    ours = plain(ours)
    for key in ours:
        if there.get(key) != ours[key]:
            raise UserError(
                f"{out} holds another {verb} ({difference(there.get(key), ours[key], key)}); choose another --out, or remove it"
            )
    return True


def difference(there: Any, ours: Any, name: str) -> str:
    """The first setting in which two requests differ; a name says more than its settings.

    >>> difference({"epochs": 3, "batch": 8}, {"epochs": 5, "batch": 8}, "train")
    'train.epochs is 3 there and 5 here'
    """
    if isinstance(there, Mapping) and isinstance(ours, Mapping):
        for key in sorted({*there, *ours}, key=lambda k: (not k.endswith("_name"), k)):
            if there.get(key) != ours.get(key):
                return difference(there.get(key), ours.get(key), f"{name}.{key}")
    if name == "fingerprint":
        return "it was made from another source, or the source has changed"
    return f"{name} is {there} there and {ours} here"


def with_defaults(given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with what it lacks of `default`, table by table: a setting that is newer than a file had the effect of its default."""
    inner = {
        k: with_defaults(v, default[k]) if isinstance(v, Mapping) and isinstance(default.get(k), Mapping) else v
        for k, v in given.items()
    }
    return {**default, **inner}


@contextmanager
def alone(out: Path, work: str) -> Iterator[None]:
    """Inside, no other process works on this place; one that tries is refused after a few seconds.

    The lock is a hidden file beside the place, so that the place itself can be replaced as a whole, and goes with the work.
    """
    out = out.absolute()
    lock = lock_path(out)
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = _acquire(lock, out, work)
    try:
        yield
    finally:
        _release(lock, handle)


def lock_path(out: Path) -> Path:
    """Beside the place; inside it where nothing may be written beside it."""
    beside = out.parent / f".{out.name}.lock"
    if out.is_dir() and not os.access(out.parent, os.W_OK):
        return out / ".lock"
    return beside


def _acquire(lock: Path, out: Path, work: str) -> int:
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        if _locked(handle):
            # The one who had it before may have removed the file in between: then this lock is on nothing.
            if _same_file(handle, lock):
                return handle
            os.close(handle)
            continue
        os.close(handle)
        if time.monotonic() > deadline:
            raise Busy(f"another {work} is at work in {out}; wait for it, or choose another --out")
        time.sleep(0.1)


def _locked(handle: int) -> bool:
    """Whether the lock could be had. Some network file systems have none: there everybody gets it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return fcntl is not None
    return True


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _release(lock: Path, handle: int) -> None:
    if fcntl is not None:
        lock.unlink(missing_ok=True)  # while it is still held: whoever opened it meanwhile notices
        os.close(handle)
        return
    os.close(handle)
    with suppress(PermissionError):  # Windows: another process has it open, and will remove it
        lock.unlink(missing_ok=True)
