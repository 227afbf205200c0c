"""Sources: the seed decides the splits."""

import torch

from unskew.data import load


def test_same_seed_same_split_other_seed_other_split(folder):
    assert torch.equal(load(folder).split, load(folder).split)
    assert not torch.equal(load(folder).split, load(folder, seed=1).split)
