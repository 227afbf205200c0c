"""Files appear whole or not at all: everything is written under a temporary name, flushed, then renamed."""

import glob
import hashlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError

WEEK = 7 * 24 * 3600.0  # seconds


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it if the block succeeds, and is removed if not."""
    with parents(path):
        sweep(path)
        part = part_path(path)
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
    with parents(out):
        sweep(out)
        part = part_path(out)
        part.mkdir()
        try:
            yield part
            if out.exists():
                shutil.rmtree(out)
            os.replace(part, out)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def parents(path: Path) -> Iterator[None]:
    """Make the folders that `path` lies in; if the block fails, remove those made here that are empty."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in missing:  # the innermost first
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def nothing_left(*places: Path) -> Iterator[None]:
    """If the block fails, remove what it wrote at these paths: files and folders that were not there before."""
    before = {place: _below(place) for place in places}
    try:
        yield
    except BaseException:
        for place, known in before.items():
            for path in sorted(_below(place) - known, reverse=True):  # what is inside a folder before the folder
                with suppress(OSError):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        raise


def _below(place: Path) -> set[Path]:
    """A path and everything inside it, if it exists."""
    return ({place} | set(place.rglob("*"))) if os.path.lexists(place) else set()


def part_path(path: Path) -> Path:
    """The temporary name of a path: fixed per target, machine and process, so that a killed process leaves at most one."""
    return path.with_name(f".{path.name}.{machine()}-{os.getpid()}.part")


def sweep(path: Path) -> None:
    """Remove what killed writers of this path left. Whoever may still be writing keeps theirs."""
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if abandoned(stale):
            shutil.rmtree(stale, ignore_errors=True) if stale.is_dir() else stale.unlink(missing_ok=True)


def abandoned(part: Path) -> bool:
    """Whether nobody writes here: the process is dead, or it is one we cannot see and nothing has changed for a week."""
    tag, dash, process = part.name.split(".")[-2].rpartition("-")
    if dash and tag == machine():
        return not _alive(process)
    try:
        return time.time() - max(p.lstat().st_mtime for p in _below(part)) > WEEK
    except (OSError, ValueError):  # it is gone, or changing
        return False


@cache
def machine() -> str:
    """Eight digits for the set of processes that this one can see: two containers on one volume differ.

    >>> len(machine())
    8
    """
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # not Linux
        namespace = 0
    return hashlib.sha256(f"{socket.gethostname()} {namespace}".encode()).hexdigest()[:8]


def safe_name(name: str, most: int = 200) -> str:
    """A class, split or file name as one part of a path: never empty, hidden, outside or too long.

    >>> safe_name("cat"), safe_name("../../esc"), safe_name("a/b"), safe_name("..")
    ('cat', '_._.._esc', 'a_b', '__')
    """
    plain_name = "".join("_" if c in "/\\:\0" or ord(c) < 32 else c for c in name)
    head = len(plain_name) - len(plain_name.lstrip("."))
    plain_name = (
        "_" * head + plain_name[head:] if plain_name.strip(".") == "" else "_" * min(head, 1) + plain_name[min(head, 1) :]
    )
    raw = os.fsencode(plain_name)
    if len(raw) <= most:
        return plain_name or "_"
    stem, suffix = os.path.splitext(plain_name)
    suffix = suffix if len(suffix) <= 12 else ""
    tag = hashlib.sha256(raw).hexdigest()[:8]  # two long names that begin alike stay apart
    return os.fsencode(stem)[: most - 9 - len(os.fsencode(suffix))].decode("utf-8", "ignore") + f"-{tag}{suffix}"


def defused(text: str) -> str:
    """Text for a CSV: what a spreadsheet would run as a formula gets an apostrophe before it; numbers stay as they are.

    >>> [defused(t) for t in ("cat", "=1+1", "-3.5", "-a", "@x")]
    ['cat', "'=1+1", '-3.5', "'-a", "'@x"]
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


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


def read_json(path: Path, what: str = "a JSON file of unskew") -> dict[str, Any]:
    """The object in a JSON file; raises if it is missing, cut short or something else."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; it should be {what}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged or not {what}: {error or type(error).__name__}") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{path} is not {what}: it holds {type(loaded).__name__}, not an object")
    return loaded


def check_shape(value: Mapping[str, Any], shape: Mapping[str, Any], path: Path, inside: str = "") -> None:
    """Raise unless a record has these keys, with values of these types: a type, a list of one type, or a table of its own.

    >>> check_shape({"a": 1, "b": {"c": ["x"]}}, {"a": float, "b": {"c": [str]}}, Path("r.json"))
    >>> check_shape({"b": {"c": 3}}, {"b": {"c": [str]}}, Path("r.json"))
    Traceback (most recent call last):
    unskew.core.errors.UserError: r.json is damaged or not unskew's: b.c must be a list, got 3
    """
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table", list: "a list"}
    for key, kind in shape.items():
        there, name = value.get(key), f"{inside}{key}"
        wanted = dict if isinstance(kind, Mapping) else list if isinstance(kind, list) else kind
        fits = isinstance(there, (int, float) if wanted is float else wanted) and (wanted is bool or not isinstance(there, bool))
        if not fits or (isinstance(kind, list) and not all(isinstance(v, kind[0]) for v in there or ())):
            what = f"a list of {words[kind[0]]}" if fits else words[wanted]
            raise UserError(f"{path} is damaged or not unskew's: {name} must be {what}, got {str(there)[:60]}")
        if isinstance(kind, Mapping):
            check_shape(there or {}, kind, path, f"{name}.")


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
