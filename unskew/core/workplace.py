"""Where a verb puts its result: decide whether the place is free, ours or another request's, lock it, and replace it as a whole.

Every verb follows the same steps:

1. `identity` is what decides the result: settings, and the content of the inputs. Times, paths of intermediate files and the
   wording of the command do not count.
2. `claim` compares it with what is in the place: nothing, the same request, finished or not, or another one, which is refused.
3. `alone` locks the place while the work lasts. The system releases the lock when the process ends, however it ends.
4. `replacing` and `whole_folder` (core.files) put the result in place at once; what a killed process left, the next one removes.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.core.files import parents, plain

PATIENCE = 8.0  # seconds: image-decoding workers take five to notice that their parent was killed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Busy(UserError):
    """Another process is working in the place."""


def identity(**parts: Any) -> dict[str, Any]:
    """What decides a result, as JSON types, so that it equals what is read back from a file.

    >>> identity(seed=0, splits=("train",))
    {'seed': 0, 'splits': ['train']}
    """
    as_json: dict[str, Any] = plain(parts)
    return as_json


def digest(*parts: bytes | str) -> str:
    """SHA-256 of content, each part preceded by its length, so that splitting the same bytes differently gives another digest."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(raw).to_bytes(8, "big"))
        total.update(raw)
    return total.hexdigest()


def check_place(out: Path, verb: str, own: Iterable[str]) -> None:
    """Refuse a place that holds something else: a file, or a folder in which no name starts with one of `own`."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is {'a file' if out.is_file() else 'no folder'} and not {verb}; choose another --out")
    if out.is_dir():
        there = [path.name.lstrip(".") for path in out.iterdir()]
        if there and not any(name.startswith(tuple(own)) for name in there):
            raise UserError(f"{out} exists and is not {verb}; choose another --out")


def claim(out: Path, verb: str, there: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> bool:
    """True if `out` holds our request, False if it holds none; another request is refused, naming the first difference."""
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
    """The first setting in which two requests differ; names of components are compared before their settings.

    >>> difference({"epochs": 3, "batch": 8}, {"epochs": 5, "batch": 8}, "train")
    'train.epochs is 3 there and 5 here'
    """
    if isinstance(there, Mapping) and isinstance(ours, Mapping):
        for key in sorted({*there, *ours}, key=lambda k: (not k.endswith("_name"), k)):
            if there.get(key) != ours.get(key):
                return difference(there.get(key), ours.get(key), f"{name}.{key}")
    if name == "fingerprint":
        return "made from another source, or the source has changed since"
    return f"{name} is {there} there and {ours} here"


def with_defaults(given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """`given`, completed from `default` table by table: a file older than a setting was written under its default."""
    inner = {
        k: with_defaults(v, default[k]) if isinstance(v, Mapping) and isinstance(default.get(k), Mapping) else v
        for k, v in given.items()
    }
    return {**default, **inner}


@contextmanager
def alone(out: Path, work: str) -> Iterator[None]:
    """Inside, no other process works in this place; one that tries is refused after a few seconds.

    The lock is a hidden file beside the place, so that the place itself can be replaced as a whole; it is removed afterwards.
    """
    out = out.absolute()
    lock = lock_path(out)
    with parents(lock):
        handle = _acquire(lock, out, work)
        try:
            yield
        finally:
            _release(lock, handle)


def lock_path(out: Path) -> Path:
    """The lock file: beside the place, or inside it if the parent folder is not writable."""
    beside = out.parent / f".{out.name}.lock"
    if out.is_dir() and not os.access(out.parent, os.W_OK):
        return out / ".lock"
    return beside


def _acquire(lock: Path, out: Path, work: str) -> int:
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        if _locked(handle):
            # The previous holder may have removed the file in the meantime: then this lock guards nothing.
            if _same_file(handle, lock):
                return handle
            os.close(handle)
            continue
        os.close(handle)
        if time.monotonic() > deadline:
            raise Busy(f"another {work} is running in {out}; wait for it to finish, or choose another --out")
        time.sleep(0.1)


def _locked(handle: int) -> bool:
    """Whether the lock was acquired. On network file systems without locks, everyone gets it."""
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
        lock.unlink(missing_ok=True)  # while still held, so that whoever has opened it in the meantime notices
        os.close(handle)
        return
    os.close(handle)
    with suppress(PermissionError):  # Windows: another process has it open and will remove it
        lock.unlink(missing_ok=True)
