"""One thread for small sums: more cost as much as they gain, and far more on a machine that is busy, where they wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
