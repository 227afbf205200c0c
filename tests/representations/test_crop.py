"""Crops: the border and the centre see what they should and nothing else."""

import pytest
import torch

from tests.support.pictures import features, pictures

pytestmark = pytest.mark.usefixtures("own_cache")


def test_border_and_center_see_what_they_should():
    x = torch.zeros(3, 3, 32, 32, dtype=torch.uint8)
    x[1, :, 12:20, 12:20] = 255  # only the centre differs from the first
    x[2, :, :2, :] = 255  # only the border differs
    border, center = features(pictures(x), "crop:where=border"), features(pictures(x), "crop:where=center")
    assert torch.equal(border[0], border[1])
    assert not torch.equal(border[0], border[2])
    assert torch.equal(center[0], center[2])
    assert not torch.equal(center[0], center[1])
