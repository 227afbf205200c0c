"""Samplers: every row once an epoch, chances by weight, groups alike."""

import torch

from unskew.data.samplers import WINDOW, Sampler, draw, group_weights


def test_uniform_sampler_visits_every_row_once_an_epoch():
    sampler = Sampler(torch.arange(100, 200), 16, 0)
    first = torch.cat([sampler.at(s) for s in range(sampler.steps_per_epoch)])
    # 100 rows in batches of 16: six full ones, and a last one of four that is too small to keep.
    assert sampler.steps_per_epoch == 6
    assert len(set(first.tolist())) == 96
    assert not torch.equal(sampler.at(0), sampler.at(6))
    assert torch.equal(sampler.at(0), Sampler(torch.arange(100, 200), 16, 0).at(0))


def test_weighted_draws_follow_the_weights():
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 6.0])
    got = draw(weights, 100_000, torch.Generator().manual_seed(0)).bincount(minlength=5) / 100_000
    torch.testing.assert_close(got, weights / 10, atol=0.01, rtol=0)
    assert got[0] == got[3] == 0


def test_group_balanced_sampler_gives_every_group_the_same_share():
    group = torch.tensor([0] * 900 + [1] * 90 + [2] * 10 + [-1] * 50)
    sampler = Sampler(torch.arange(1050), 350, 0, group_weights(group))
    seen = torch.cat([group[sampler.at(s)] for s in range(60)])
    assert (seen >= 0).all()
    share = seen.bincount() / len(seen)
    torch.testing.assert_close(share, torch.full((3,), 1 / 3), atol=0.02, rtol=0)


def test_an_epoch_over_shards_reads_every_block_once_and_every_row_once():
    blocks = torch.arange(1000) // 10
    rows = torch.arange(5, 995)
    sampler = Sampler(rows, 33, 7, blocks=blocks)
    orders = [sampler.epoch(k) for k in range(3)]
    for order in orders:
        assert sorted(order.tolist()) == rows.tolist()
        windows = [set(blocks[order][part].tolist()) for part in _windows(blocks[order], WINDOW)]
        assert all(not (a & b) for k, a in enumerate(windows) for b in windows[k + 1 :])  # no block is met again
        assert all(len(w) <= WINDOW for w in windows)
    assert not torch.equal(orders[0], orders[1])
    assert torch.equal(orders[2], Sampler(rows, 33, 7, blocks=blocks).epoch(2))
    first = torch.stack([Sampler(rows, 33, seed, blocks=blocks).epoch(0)[0] for seed in range(200)])
    assert len(first.unique()) > 150  # any row may come first


def _windows(met, most):
    """Places of an order, cut whenever a block beyond the first `most` appears."""
    parts, seen, start = [], set(), 0
    order = met.tolist()
    ids = torch.arange(len(order))
    for k, block in enumerate(order):
        if block not in seen and len(seen) == most:
            parts.append(ids[start:k])
            seen, start = set(), k
        seen.add(block)
    return [*parts, ids[start:]]


def test_weighted_draws_over_shards_are_the_same_rows_in_another_order():
    blocks = torch.arange(400) // 10
    weights = torch.rand(400, generator=torch.Generator().manual_seed(0))
    plain, sharded = Sampler(torch.arange(400), 32, 1, weights), Sampler(torch.arange(400), 32, 1, weights, blocks)
    assert sorted(plain.epoch(3).tolist()) == sorted(sharded.epoch(3).tolist())
    assert not torch.equal(plain.epoch(3), sharded.epoch(3))
