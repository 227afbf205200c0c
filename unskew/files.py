"""Files that are whole or absent: everything is written under a temporary name, flushed, then renamed."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unskew.errors import UserError

PATIENCE = 8.0  # seconds: processes that decode images notice after five that the one they worked for was killed

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place if the block ends well, and vanishes if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is fixed per target and process: a killed process leaves at most one, swept by the next writer.
    for stale in path.parent.glob(f".{path.name}.*.part"):
        if not _alive(stale.name.split(".")[-2]):
            stale.unlink(missing_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(part, 0o666 & ~_umask())  # some writers make files that only their owner can read
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class Busy(UserError):
    """Another process is at work in the folder."""


@contextmanager
def alone(folder: Path, work: str) -> Iterator[None]:
    """Inside, no other process does this work in the folder; one that tries is told. Made if it is not there.

    The folder itself is locked, so that nothing is left in it, and the system gives it free when the process ends, however it ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                raise Busy(f"another {work} is at work in {folder}; wait for it, or choose another --out") from None
            except OSError:  # some network file systems have no locks
                pass
            break
        yield
    finally:
        os.close(handle)


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def write_text(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Strict JSON: NaN and infinity become null, so that any reader can open it."""
    write_text(path, dumps(value) + "\n")


def dumps(value: Any, indent: int | None = 1) -> str:
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """Records, paths and non-finite numbers as JSON knows them.

    >>> plain({"a": float("nan"), "b": (1, 2)})
    {'a': None, 'b': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value
