"""Ctrl-C at moments when an exception in the middle of things would do damage."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_interrupt(act: Callable[[], object]) -> Iterator[None]:
    """Inside, Ctrl-C calls `act` and raises nothing."""
    usual = signal.getsignal(signal.SIGINT)
    # Only the main thread may set handlers, and only Python's own is replaced: who ignores Ctrl-C goes on doing so.
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        act()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Inside, Ctrl-C waits for the end of the block, which must be short.

    A reader written in Rust that calls back into Python reports a KeyboardInterrupt there as an error of the file.
    """
    asked: list[bool] = []
    try:
        with on_interrupt(lambda: asked.append(True)):
            yield
    finally:
        if asked:
            raise KeyboardInterrupt
