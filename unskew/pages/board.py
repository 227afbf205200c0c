"""Progress of a bench: on a terminal a live table with the time left, elsewhere a line per finished run."""

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unskew.core import progress
from unskew.suites.figures import is_number, shown
from unskew.suites.reader import Task


class Board:
    """Keeps track of every run that starts and ends; `workers` run side by side."""

    def __init__(self, tasks: list[Task], workers: int) -> None:
        self.tasks, self.workers = tasks, max(workers, 1)
        self.begun: dict[str, float] = {}  # running now: id -> start time
        self.took: dict[str, tuple[Task, float]] = {}
        self.figures: dict[str, str] = {}

    def started(self, task: Task) -> None:
        self.begun[task.id] = time.monotonic()

    def finished(self, task: Task, found: dict[str, Any]) -> None:
        self._ended(task)
        known = {k: v for k, v in found.get("figures", {}).items() if v is not None}
        self.figures[task.id] = (
            ", ".join(f"{k} {shown(k, v):{'.3g' if is_number(k) else '.1f'}}" for k, v in known.items()) or "done"
        )
        self._say(f"{task.id}: {self.figures[task.id]}")

    def failed(self, task: Task, why: str) -> None:
        self._ended(task)
        self.figures[task.id] = f"failed: {why}"
        self._say(f"{task.id} failed: {why}")

    def _ended(self, task: Task) -> None:
        self.took[task.id] = (task, time.monotonic() - self.begun.pop(task.id, time.monotonic()))

    def _say(self, text: str) -> None:
        if not sys.stderr.isatty():
            progress.say(f"{text} ({self.headline()})")

    def seconds_left(self) -> float | None:
        """An estimate from finished runs of the same method, or of all if there are none; None before the first."""
        if not self.took:
            return None
        overall = statistics.mean(s for _, s in self.took.values())
        now, left, longest = time.monotonic(), 0.0, 0.0
        for task in self.tasks:
            if task.id in self.took:
                continue
            alike = [s for t, s in self.took.values() if (t.name, t.shared) == (task.name, task.shared)]
            whole = statistics.mean(alike) if alike else overall
            rest = max(whole - (now - self.begun.get(task.id, now)), 0.0)
            left, longest = left + rest, max(longest, rest)
        return max(left / self.workers, longest)

    def headline(self) -> str:
        left = self.seconds_left()
        when = "" if left is None else f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"
        return f"{len(self.took)} of {len(self.tasks)} runs{when}"

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(title=self.headline(), title_justify="left", box=None, pad_edge=False)
        for column in ("data", "", "method", "seed", ""):
            table.add_column(column)
        for task in self._in_view():
            state = self.figures.get(task.id) or (
                f"running, {time.monotonic() - self.begun[task.id]:.0f} s" if task.id in self.begun else "waiting"
            )
            table.add_row(task.data, task.at, task.name, str(task.seed), state, style="dim" if state == "waiting" else None)
        return table

    def _in_view(self, rows: int = 30) -> list[Task]:
        """All runs if they fit the screen, otherwise those around the first unfinished one."""
        first = next((k for k, t in enumerate(self.tasks) if t.id not in self.took), len(self.tasks))
        start = max(0, min(first - rows // 2, len(self.tasks) - rows))
        return self.tasks[start : start + rows]


@contextmanager
def board(tasks: list[Task], workers: int) -> Iterator[Board]:
    shown = Board(tasks, workers)
    if not progress.wanted() or not sys.stderr.isatty():
        yield shown
        return
    from rich.console import Console
    from rich.live import Live

    with Live(shown, console=Console(stderr=True), refresh_per_second=2):
        yield shown
