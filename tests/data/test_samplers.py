"""Samplers: every row once an epoch, chances by weight, groups alike."""

import torch

from unskew.data.samplers import Sampler, draw, group_weights


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
