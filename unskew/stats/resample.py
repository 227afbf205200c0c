r"""Bootstrap by counts: instead of drawing rows, draw how often each row counts, chunk by chunk, for all draws in one pass.

.. math::  T_{rs} = \sum_i w_{ri}\, v_{is}, \qquad w_{ri} \sim \mathrm{Poisson}(1), \qquad r = 1 \dots R

A draw of n rows from n holds row i Binomial(n, 1/n) times, which tends to Poisson(1); counts that are Poisson need not know n, nor one
another. What is wanted must be a function of the sums T, such as a ratio of two: the number of rows in a draw is itself a sum. A chunk
of m rows takes R m counts, whatever n is, and the sums R S numbers.

Source: Hanley and MacGibbon, "Creating non-parametric bootstrap samples using Poisson frequencies", 2006; Chamandy et al.,
"Estimating uncertainty for massive data streams", Google, 2012.
Differs: counts come from 16 random bits. Shares are rounded to 1/65,536 such that mean and variance are exactly 1; none exceeds 8.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from unskew.core.matrix import slices
from unskew.core.rng import numpy_stream, stream

COUNTED = 100_000  # rows above which intervals are bootstrapped by counts
CHUNK = 16_384  # rows at once: 400 draws of them are 26 MB. Part of what is drawn: another size draws other counts
SHARES = (24_103, 24_124, 12_046, 4_018, 1_005, 201, 33, 5, 1)  # of 65,536: how many give 0, 1, 2, ... 8


def counts(draws: int, rows: int, seed: int) -> Iterator[tuple[slice, Tensor]]:
    """(rows, (draws, m) how often each of them is in every draw) of one chunk after another.

    >>> [(part, tuple(w.shape)) for part, w in counts(3, 5, seed=0)]
    [(slice(0, 5, None), (3, 5))]
    """
    ends = np.cumsum(SHARES)[:-1]
    for number, part in enumerate(slices(rows, CHUNK)):
        bits = numpy_stream(seed, "bootstrap by counts", number).integers(
            0, 65_536, (draws, part.stop - part.start), dtype=np.uint16
        )
        often = np.zeros(bits.shape, dtype=np.uint8)
        for end in ends:  # comparisons are several times faster than a look into a table
            often += (bits >= end).view(np.uint8)
        yield part, torch.from_numpy(often).float()


def drawn_sums(values: Callable[[slice], Tensor], rows: int, draws: int, seed: int) -> Tensor:
    """(draws, S) sums over every draw of the rows' values, which are asked for chunk by chunk, (m, S).

    >>> drawn_sums(lambda part: torch.ones(4, 1), 4, 20_000, seed=0).mean().round().item()  # as many rows as there are
    4.0
    """
    total: Tensor | None = None
    for part, often in counts(draws, rows, seed):
        value = values(part)
        # Small whole numbers times zeros and ones are exact in single precision; chunks are added in double.
        here = (often @ value.float()).double() if _whole(value) else often.double() @ value.double()
        total = here if total is None else total + here
    return torch.zeros(draws, 0, dtype=torch.float64) if total is None else total


def grouped_sums(values: Callable[[slice], Tensor], group: Tensor, size: int, draws: int, seed: int) -> Tensor:
    """(draws, size, S) the same sums over the rows of each group; `group` (n,) has the codes, -1 for none."""
    total: Tensor | None = None
    for part, often in counts(draws, len(group), seed):
        value, code = values(part), group[part]
        if total is None:
            total = torch.zeros(draws, size, value.shape[1], dtype=torch.float64)
        for g in torch.unique(code[code >= 0]).tolist():
            inside = (code == g).nonzero().flatten()
            mine, drawn = value[inside], often[:, inside]
            total[:, g] += (drawn @ mine.float()).double() if _whole(mine) else drawn.double() @ mine.double()
    return torch.zeros(draws, size, 0, dtype=torch.float64) if total is None else total


@lru_cache(maxsize=1)
def drawn_within(sizes: tuple[int, ...], draws: int, seed: int) -> tuple[Tensor, ...]:
    """For classes of these sizes, (draws, size) how often each row is in each draw. Kept: all representations of the same rows are
    judged by the same draws.

    >>> [tuple(often.sum(1).tolist()) for often in drawn_within((3, 5), 2, seed=0)]  # as many as the class has
    [(3, 3), (5, 5)]
    """
    generator = stream(seed, "bootstrap")
    found = []
    for size in sizes:
        often = torch.zeros(draws, size, dtype=torch.int16)
        for part in torch.split(often, max(1, 4_000_000 // size)):
            pick = torch.randint(0, size, (len(part), size), generator=generator)
            part.scatter_add_(1, pick, torch.ones_like(pick, dtype=torch.int16))
        found.append(often)
    return tuple(found)


def _whole(value: Tensor) -> bool:
    """Whether products with counts, summed over a chunk, are exact in single precision."""
    return not value.is_floating_point()
