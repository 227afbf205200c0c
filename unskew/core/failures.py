"""What anything that went wrong means to the user: an exit status and one line. Nothing heavy is imported here."""

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from unskew.core.errors import UserError

WRONG, OTHER, INTERRUPTED = 2, 1, 130  # the request or the input is wrong; anything else; Ctrl-C
AGAIN = "interrupted; run the same command again to resume"

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_PLACES = {  # of a path that cannot be used: the user must choose another
    errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.ENOENT, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.ENODEV, errno.EBUSY, errno.EXDEV, errno.EILSEQ,
}  # fmt: skip
_OF_THE_INPUT = {
    None,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}  # a file it lacks
_SIZE = re.compile(r"allocate ([\d.]+) ?(bytes|[KMGT]i?B)", re.IGNORECASE)
_UNIT = {"b": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
_ADVICE = {  # by the package of unskew that asked for the memory
    "data": ("the inputs", "lower data.size, data.most or data.memory, or set data.mode=stream"),
    "features": ("features", "lower data.size or data.most, or name fewer representations"),
    "representations": ("features", "lower data.size or data.most, or name fewer representations"),
}


def describe(error: BaseException) -> tuple[int, str]:
    """The exit status and the line for an error of any kind.

    >>> describe(UserError("no method 'erv'"))
    (2, "no method 'erv'")
    >>> describe(OSError(28, "No space left on device"))
    (2, 'the disk is full (No space left on device); free some space and run the same command again')
    """
    if isinstance(error, UserError):
        return WRONG, str(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, AGAIN
    if is_allocation(error):
        return OTHER, _memory(error)
    if isinstance(error, OSError):
        return _disk(error)
    text = " ".join(str(error).split()) or "no message"
    return OTHER, f"{type(error).__name__}: {text[:500]}{'; ' + _place(error) if _place(error) else ''}. {_more()}"


def is_allocation(error: BaseException) -> bool:
    """Whether memory was asked for that is not there, by Python, NumPy or torch."""
    words = ("can't allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(w in str(error) for w in words))


def is_panic(error: BaseException) -> bool:
    """Whether polars gave up; its panics are no Exceptions."""
    return type(error).__name__ == "PanicException"


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Inside, whatever goes wrong is wrong with `what`, a file or folder of the user's: one line that names it.

    Trouble of this machine, a lack of memory or a disk that cannot be read or written, stays what it is.
    """
    try:
        yield
    except BaseException as error:
        is_ours = isinstance(error, UserError) or (isinstance(error, OSError) and error.errno not in _OF_THE_INPUT)
        if is_ours or is_allocation(error) or not (isinstance(error, Exception) or is_panic(error)):
            raise
        text = " ".join(str(error).split())
        raise UserError(f"{what} ({type(error).__name__}{': ' + text[:200] if text else ''})") from error


def show_traceback(error: BaseException) -> None:
    """Print the traceback if UNSKEW_DEBUG=1."""
    if os.environ.get("UNSKEW_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)


def one_line_warnings() -> None:
    """From now on, print a library's warning as one line without source code."""
    import warnings

    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], filename: str, *place: Any, **more: Any) -> None:
        of_pillow = "PIL" in filename.replace("\\", "/").split("/")
        if of_pillow and "PIL" in said:  # it warns once per picture
            return
        said.add("PIL" if of_pillow else "")
        text = f"{'an image is odd: ' if of_pillow else ''}{' '.join(str(message).split())[:300]}"
        print(f"warning: {text}{' (said once)' if of_pillow else ''}", file=sys.stderr)

    warnings.filterwarnings("ignore", message="Image size .* could be decompression bomb")  # data.max_pixels refuses it
    warnings.showwarning = show


def _disk(error: OSError) -> tuple[int, str]:
    name = "" if error.filename is None else os.fsdecode(error.filename) if not isinstance(error.filename, int) else ""
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    if error.errno in _FULL:
        return WRONG, f"the disk is full ({reason}); free some space and run the same command again"
    if error.errno in _PLACES and name:
        shown = name if len(name) <= 120 else f"{name[:60]}…{name[-40:]}"
        return WRONG, f"{shown}: {reason}; choose another place"
    return OTHER, f"{name + ': ' if name else ''}{reason}. {_more()}"


def _memory(error: BaseException) -> str:
    found = _SIZE.search(str(error))
    gigabytes = float(found[1].rstrip(".")) * _UNIT[found[2][0].lower()] / 1e9 if found else 0.0
    needs = f"needs about {gigabytes:.3g} GB" if gigabytes >= 0.01 else "needs more memory than there is"
    what, advice = _asked_for(error)
    return f"{needs} for {what}: {advice}"


def _asked_for(error: BaseException) -> tuple[str, str]:
    """What the memory was for, and what to lower."""
    frames = list(_frames(error))
    networks = [f.f_locals["self"] for f in frames if hasattr(f.f_locals.get("self"), "named_modules")]
    owner = next((n for n in networks if hasattr(n, "cfg") and hasattr(n, "sees")), None)  # the method
    if owner is not None:
        names = {id(module): name for name, module in owner.named_modules()}
        inner = next((names[id(n)] for n in reversed(networks) if names.get(id(n))), "")
        part = inner.partition(".")[0]
        given = getattr(owner.cfg, part, None) if part else None
        sizes = [f"{part}.{k}" for k in given if k not in ("name", "model")] if isinstance(given, dict) else []
        if not part:
            return "a step", "lower train.batch"
        return f"the activations of {part}", f"lower train.batch or {' or '.join(sizes) or 'the size of ' + part}"
    for frame in reversed(frames):
        package = frame.f_globals.get("__name__", "").split(".")
        if package[0] == "unskew" and len(package) > 1 and package[1] in _ADVICE:
            return _ADVICE[package[1]]
    if networks:
        return "a network", "lower train.batch, data.size or the size of the network"
    return "this", "use fewer rows or smaller inputs, or a machine with more memory"


def _frames(error: BaseException) -> Iterator[FrameType]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        yield frame


def _place(error: BaseException) -> str:
    """The innermost function of unskew on the way to the error."""
    own = [f for f in _frames(error) if f.f_globals.get("__name__", "").startswith("unskew.")]
    return f"in {own[-1].f_globals['__name__']}.{own[-1].f_code.co_name}" if own else ""


def _more() -> str:
    return "UNSKEW_DEBUG=1 shows the traceback"
