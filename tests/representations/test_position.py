import pytest
import torch

from tests.support.pictures import features, pictures

pytestmark = pytest.mark.usefixtures("own_cache")


def test_tiles_hold_the_colours_of_their_quarters():
    x = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    found = features(pictures(x), "position").view(4, 8, 8, 13)
    # Tile (2, 5) covers rows 8 to 11 and columns 20 to 23; its quarters are 2 x 2 pixels, unfolded channel by channel.
    expected = x[:, :, 8:12, 20:24].float().div(255).unflatten(3, (2, 2)).unflatten(2, (2, 2)).mean((3, 5)).flatten(1)
    torch.testing.assert_close(found[:, 2, 5, :12], expected)
