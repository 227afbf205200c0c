"""The spectrum of a wave has its peak at the frequency of the wave."""

import math

import pytest
import torch

from tests.support.pictures import features, pictures

pytestmark = pytest.mark.usefixtures("own_cache")


def test_spectrum_finds_the_frequency():
    t = torch.arange(32)
    slow, fast = (127 + 100 * torch.cos(2 * math.pi * t * k / 32) for k in (2, 14))
    x = torch.stack([slow, fast])[:, None, None].expand(-1, 3, 32, -1).round().to(torch.uint8).contiguous()
    f = features(pictures(x), "spectrum")[:, :12]
    # Frequencies 2/32 and 14/32, as shares of the largest radius sqrt(1/2), in twelve bands.
    assert f.argmax(1).tolist() == [int(2 / 32 / math.sqrt(0.5) * 12), int(14 / 32 / math.sqrt(0.5) * 12)]
