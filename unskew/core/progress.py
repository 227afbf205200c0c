"""Progress on stderr: a bar with the time left on a terminal, an occasional line elsewhere, nothing unless switched on."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_on = False
QUIET_SECONDS = 20.0  # between two lines without a terminal


class Advance(Protocol):
    def __call__(self, steps: int = 1, note: str = "") -> None: ...


def switch_on() -> None:
    """For the command line; a library call stays silent."""
    global _on
    _on = True


def wanted() -> bool:
    return _on


def say(text: str) -> None:
    """Print one line to stderr."""
    if _on:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def bar(label: str, total: int, done: int = 0) -> Iterator[Advance]:
    """A bar over `total` steps, `done` of them already made; call what it yields to advance."""
    if not _on:
        yield lambda steps=1, note="": None
    elif sys.stderr.isatty():
        yield from _rich_bar(label, total, done)
    else:
        yield _QuietLines(label, total, done)


def _rich_bar(label: str, total: int, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True)) as shown:
        task = shown.add_task(label, total=total, completed=done, note="")

        def advance(steps: int = 1, note: str = "") -> None:
            if note:
                shown.update(task, note=note)
            shown.advance(task, steps)

        yield advance


class _QuietLines:
    def __init__(self, label: str, total: int, done: int) -> None:
        self.label, self.total, self.done, self.first = label, total, done, done
        self.started = self.spoken = time.monotonic()

    def __call__(self, steps: int = 1, note: str = "") -> None:
        self.done += steps
        now = time.monotonic()
        if now - self.spoken < QUIET_SECONDS:
            return
        self.spoken = now
        pace = (now - self.started) / max(self.done - self.first, 1)
        left = pace * (self.total - self.done)
        say(f"{self.label}: {self.done} of {self.total}, {left:.0f} s left" + (f", {note}" if note else ""))
