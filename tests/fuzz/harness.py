"""Run the real entry point on one case in a forked process, and judge how it ended."""

import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECONDS = 120  # until a case counts as hanging; nothing in it takes more than a few seconds alone
MEMORY = 6 * 2**30  # bytes, so that an absurd request fails at once


@dataclass(frozen=True)
class Ended:
    """How a case ended: its exit status, what it printed, what it left, and what is wrong with that."""

    status: int
    said: str
    left: tuple[str, ...]
    seconds: float

    @property
    def faults(self) -> list[str]:
        return list(self._faults())

    def _faults(self):
        lines = [line for line in self.said.splitlines() if line.strip()]
        told = [line for line in lines if line.startswith("unskew: ")]
        if self.status == HUNG:
            yield "hang"
            return
        if any("Traceback (most recent" in line or "panicked at" in line for line in lines):
            yield "traceback"
        out_of_memory = bool(told) and "needs " in told[-1] and " for " in told[-1]
        if self.status not in (0, 2) and not (self.status == 1 and out_of_memory):
            yield "status"
        if self.status != 0 and (len(told) != 1 or lines[-1] != told[0]):
            yield "lines"
        if self.status != 0 and self.left:
            yield "leftovers"


HUNG = 1000
UNBUILT = 98  # the case itself could not be written: the fuzzer's mistake


def run(build: Callable[[Path], list[str]], cache: Path) -> Ended:
    """Build a case in an empty folder, and run its command there; both in the child, so that nothing of one case reaches another."""
    with tempfile.TemporaryDirectory(prefix="unskew-fuzz-") as name:
        home = Path(name)
        (home / "work").mkdir()
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _child(build, home, cache)
        status = _wait(child, started)
        before = _lines(home / "before")
        left = sorted(set(_listing(home)) - before - OURS)
        said = (home / "stderr").read_text(encoding="utf-8", errors="replace") if (home / "stderr").exists() else ""
        return Ended(status, said, tuple(left), time.monotonic() - started)


OURS = {"before", "stderr", "stdout"}


def _listing(home: Path) -> list[str]:
    """Everything in the folder of a case, also beside the folder that the command runs in."""
    return [ascii(str(p.relative_to(home))) for p in home.rglob("*") if str(p.relative_to(home)) not in OURS]


def _lines(path: Path) -> set[str]:
    return set(path.read_text().splitlines()) if path.exists() else set()


def _wait(child: int, started: float) -> int:
    while time.monotonic() - started < SECONDS:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HUNG


def _child(build: Callable[[Path], list[str]], home: Path, cache: Path) -> None:
    """In the child: never returns."""
    status = 99
    try:
        os.setsid()
        os.environ["UNSKEW_DATA"] = str(cache)
        os.environ.pop("UNSKEW_DEBUG", None)
        os.chdir(home / "work")
        try:
            words = build(home / "work")
        except Exception:
            traceback.print_exc()
            os._exit(UNBUILT)
        (home / "before").write_text("\n".join(_listing(home)))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(home / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
        sys.argv = ["unskew", *words]
        from unskew.cli import main

        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)
