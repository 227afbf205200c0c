"""A low resolution is an average over areas."""

import pytest
import torch

from tests.support.pictures import features, pictures

pytestmark = pytest.mark.usefixtures("own_cache")


def test_low_resolution_is_an_area_average():
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    expected = x.view(2, 3, 8, 2, 8, 2).float().mean((3, 5)) / 255
    torch.testing.assert_close(features(pictures(x), "low_resolution"), expected.flatten(1))
