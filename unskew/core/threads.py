"""As many threads as pay: more cost as much as they gain, and far more on a machine that is busy, where they wait for each other."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

if sys.platform == "linux":
    import resource

T = TypeVar("T")
R = TypeVar("R")

SMALL = 500_000  # numbers in the matrix of rows: below it a second thread gained nothing (fits of 300 x 30 to 10,000 x 32)


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Inside, torch uses one thread if the work is on fewer than SMALL numbers at a time."""
    before = torch.get_num_threads()
    if numbers >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


FIRST = 8  # items that show whether they are waited for
FEW = 1000  # items that are done one after another if they are not


def in_order(work: Callable[[T], R], items: Sequence[T], threads: int, *, each: int = 1) -> Iterator[R]:
    """`work` of every item, in order; in threads if the first items had to be waited for, as files on a network disk have to be.

    An item stands for `each` files. Files that are at hand leave threads nothing to wait for but each other: reading 300 pictures
    took eight of them 0.6 processor seconds, and one 0.35.
    """
    first = max(1, FIRST // each)
    before = _waits()
    for item in items[:first]:
        yield work(item)
    after, rest = _waits(), items[first:]
    if before is not None and after is not None and after - before < first * each / 2:
        threads = 1 if len(rest) * each < FEW else min(threads, os.cpu_count() or 1)
    if threads == 1:
        yield from map(work, rest)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, rest)


def _waits() -> int | None:
    """How often this thread has waited for something, such as a disk; None where nobody counts."""
    return None if sys.platform != "linux" else resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
