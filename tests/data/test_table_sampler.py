"""Samplers of a repair's table draw rows by their weights, one process or several."""

import polars as pl
import pytest
import torch

from unskew.data.table_sampler import reject
from unskew.records import Table
from unskew.repairs import sampler


def test_samplers_draw_by_weight_and_share_over_processes():
    weight = torch.tensor([0.0, 1.0, 3.0, 0.5])
    frame = pl.DataFrame({"index": [10, 11, 12, 13], "split": ["train"] * 4, "weight": weight.numpy()})
    table = Table(frame)
    for kind in ("weighted", "rejection"):
        drawn = list(sampler(table, num_samples=30_000, kind=kind, seed=1))
        share = torch.tensor([drawn.count(i) for i in (10, 11, 12, 13)]) / 30_000
        torch.testing.assert_close(share, weight / weight.sum(), rtol=0, atol=0.012)
    whole = list(sampler(table, num_samples=10, world=1, rank=0))
    parts = [list(sampler(table, num_samples=10, world=2, rank=r)) for r in (0, 1)]
    assert [i for pair in zip(*parts, strict=True) for i in pair] == whole
    again = sampler(table, num_samples=10)
    again.set_epoch(1)
    assert list(again) != whole
    assert set(sampler(table, num_samples=50, within_split=True)) <= {1, 2, 3}
    loader = torch.utils.data.DataLoader(list(range(20)), batch_size=5, sampler=sampler(table, num_samples=20))
    assert {int(i) for batch in loader for i in batch} <= {11, 12, 13}


def test_rejection_accepts_with_the_weight():
    weight = torch.tensor([0.001, 0.002])
    counts = reject(weight, 30_000, torch.Generator().manual_seed(0)).bincount()
    assert float(counts[1] / counts[0]) == pytest.approx(2, rel=0.06)
