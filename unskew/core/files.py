"""Files appear whole or not at all: everything is written under a temporary name, flushed, then renamed."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it if the block succeeds, and is removed if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is fixed per target and process: a killed process leaves at most one, removed by the next writer.
    for stale in path.parent.glob(f".{path.name}.*.part"):
        if not _alive(stale.name.split(".")[-2]):
            stale.unlink(missing_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(part, 0o666 & ~_umask())  # some libraries create files that only the owner can read
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder that replaces `out` if the block succeeds, and is removed if not.

    The old folder is removed only when the new one is ready beside it, so a killed process leaves one of the two.
    """
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    for stale in out.parent.glob(f".{out.name}.*.part"):  # of a process that was killed: the caller has the place to itself
        shutil.rmtree(stale, ignore_errors=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        if out.exists():
            shutil.rmtree(out)
        os.replace(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _alive(process: str) -> bool:
    """Whether a process with this id runs on this machine."""
    if not process.isdecimal():
        return False
    return _alive_on_windows(int(process)) if sys.platform == "win32" else _alive_elsewhere(int(process))


def _alive_elsewhere(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _alive_on_windows(process: int) -> bool:
    """Ask by handle: on Windows, os.kill would end the process."""
    import ctypes

    synchronize = 0x00100000
    handle = ctypes.windll.kernel32.OpenProcess(synchronize, False, process)  # type: ignore[attr-defined,unused-ignore]
    if handle:
        ctypes.windll.kernel32.CloseHandle(handle)  # type: ignore[attr-defined,unused-ignore]
    return bool(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def write_text(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Strict JSON: NaN and infinity become null, so that any parser can read it."""
    write_text(path, dumps(value) + "\n")


def dumps(value: Any, indent: int | None = 1) -> str:
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """Records, paths and non-finite numbers as JSON types.

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
