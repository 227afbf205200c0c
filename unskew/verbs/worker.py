"""The entry of a process that works for a verb: which modules it may import, how it fails, and that it ends with its parent."""

import os
import stat
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from unskew.core import failures, registry
from unskew.core.errors import UserError


def trust(words: list[str]) -> None:
    """Import only the modules that the one who started this process may import."""
    registry.from_here()
    if "--trust" in words:
        registry.trust_everything()
    else:
        registry.only_these(words)


def _end_with_parent() -> None:
    """Standard input is a pipe from the parent. When it closes, the parent has ended and nobody is waiting for this work."""
    os.read(0, 1)  # not through sys.stdin, whose lock Python takes when it exits
    os._exit(1)


def as_worker(main: Callable[[Path], None]) -> None:
    """Do what the request file in the first word asks. The last line of the log is the reason if it fails."""
    if stat.S_ISFIFO(os.fstat(0).st_mode):  # not when started by hand
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        trust(sys.argv[2:])
        main(Path(sys.argv[1]))
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if not isinstance(error, UserError):
            traceback.print_exception(error, file=sys.stderr)
        status, line = failures.describe(error)
        print(f"unskew: {line}", file=sys.stderr)
        raise SystemExit(status) from None
