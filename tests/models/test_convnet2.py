"""ConvNet-2: its parameters counted by hand, the sizes of its maps, and settings that do not fit."""

import pytest
import torch

from tests.support.networks import count
from unskew.core.errors import UserError
from unskew.models._contract import maker


def test_parameters_counted_by_hand():
    # Five convolutions of 6, 6, 5, 5 and 4 pixels, each with a bias and two numbers per channel of normalisation, 32 -> 10.
    convolutions = 3 * 8 * 36 + 8 * 16 * 36 + 16 * 16 * 25 + 16 * 32 * 25 + 32 * 32 * 16
    assert count("convnet2", (3, 64, 64)) == convolutions + 3 * (8 + 16 + 16 + 32 + 32) + 32 * 10 + 10


def test_every_map_is_half_as_large_as_the_one_before():
    model = maker("convnet2", {}, (3, 64, 48), 10)().eval()
    x = torch.rand(2, 3, 64, 48)
    sizes = [tuple(model.features(x, f"conv{k}").shape[1:]) for k in range(1, 6)]
    assert sizes == [(8, 32, 24), (16, 16, 12), (16, 8, 6), (32, 4, 3), (32,)]
    with pytest.raises(UserError, match="positive numbers of the same length"):
        maker("convnet2", {"channels": "8,16"}, (3, 64, 64), 10)()
