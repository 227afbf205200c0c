"""The loader: memory and stream give the same batches, and a batch holds only what is asked for."""

import pytest
import torch

from unskew.data import load
from unskew.data.loader import Loader
from unskew.data.samplers import Sampler


def test_memory_and_stream_give_the_same_batches(folder):
    memory, stream = load(folder), load(folder, mode="stream")
    assert memory.fingerprint == stream.fingerprint
    assert not stream.inputs.in_memory
    for workers in (0, 2):
        batches = []
        for data in (memory, stream):
            loader = Loader(data, Sampler(data.rows("train"), 8, 3), workers=workers)
            batches.append([next(b) for b in [loader.batches(1)] for _ in range(5)])
        for (a, n), (b, m) in zip(*batches, strict=True):
            assert n == m
            assert torch.equal(a.index, b.index)
            assert torch.equal(a.x, b.x)


def test_a_batch_holds_only_what_is_asked_for():
    data = load("toy")
    for sees in (frozenset(), frozenset({"bias"})):
        batch, _ = next(Loader(data, Sampler(data.rows("train"), 8, 0), sees).batches())
        assert set(batch.columns()) == {"index", "x", "y"} | ({"bias", "group"} if sees else set())
    with pytest.raises(LookupError, match="declare sees"):
        next(Loader(data, Sampler(data.rows("train"), 8, 0)).batches())[0].need("bias")
