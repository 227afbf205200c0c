"""A low resolution is an average over areas."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.pictures import features, pictures
from unskew.representations._contract import reduced

pytestmark = pytest.mark.usefixtures("own_cache")


def test_low_resolution_is_an_area_average():
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    expected = x.view(2, 3, 8, 2, 8, 2).float().mean((3, 5)) / 255
    torch.testing.assert_close(features(pictures(x), "low_resolution"), expected.flatten(1))


@pytest.mark.parametrize("shape", [(64, 48), (24, 40), (50, 37)])
def test_area_averages_are_those_of_torch(shape):
    x = torch.rand(2, 3, *shape)
    for side in (8, 16):
        torch.testing.assert_close(reduced(x, side), F.adaptive_avg_pool2d(x, side))
