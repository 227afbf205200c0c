"""Named random streams: every random draw has its own seed, made from the run's seed and a name.

Adding a stream never shifts the others, and a resumed run needs no generator state: the stream of step 7,000 is a function of
(seed, "step", 7000).
"""

import hashlib

import numpy as np
import torch


def seed_of(seed: int, *names: object) -> int:
    """A 63-bit seed for the stream of these names.

    >>> seed_of(1, "loader", 0) == seed_of(1, "loader", 0)
    True
    >>> seed_of(1, "loader", 0) == seed_of(1, "loader", 1)
    False
    """
    digest = hashlib.blake2b(repr((seed, *names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def stream(seed: int, *names: object) -> torch.Generator:
    """A torch generator on the CPU for the stream of these names."""
    return torch.Generator().manual_seed(seed_of(seed, *names))


def numpy_stream(seed: int, *names: object) -> np.random.Generator:
    """A NumPy generator for the stream of these names."""
    return np.random.default_rng(seed_of(seed, *names))
