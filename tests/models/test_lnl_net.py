"""The network of learning not to learn: the map that its bias predictor sees."""

import torch

from unskew.models._contract import maker


def test_lnl_map_is_14_by_14():
    model = maker("lnl-net", {}, (3, 28, 28), 10)()
    assert model.features(torch.rand(2, 3, 28, 28), "f").shape == (2, 32, 14, 14)
