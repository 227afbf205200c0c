"""Colour: maximum, mean and histogram of pictures whose colours are known."""

import pytest
import torch

from tests.support.pictures import features, pictures

pytestmark = pytest.mark.usefixtures("own_cache")


def test_color_by_hand():
    x = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    x[0, 0, 0, 0] = 255  # one red pixel on black
    x[1] = 102  # grey everywhere
    data = pictures(x)
    assert features(data, "color:kind=max").tolist() == [[1, 0, 0], pytest.approx([0.4] * 3)]
    mean = features(data, "color:kind=mean")
    assert mean[0, :3].tolist() == pytest.approx([1 / 16, 0, 0])
    assert mean[1, 3:].tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    histogram = features(data, "color:kind=histogram").square()
    assert histogram.sum(1).tolist() == pytest.approx([1, 1])
    assert histogram[0, 0] == pytest.approx(15 / 16)  # black
    assert histogram[0, 3 * 16] == pytest.approx(1 / 16)  # the red box: first channel in its last bin
    assert histogram[1, 1 * 16 + 1 * 4 + 1] == pytest.approx(1)  # 0.4 lies in the second of four bins
