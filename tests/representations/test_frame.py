"""Single frames of clips."""

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew.features import standard

pytestmark = pytest.mark.usefixtures("own_cache")


def test_frames_of_clips():
    x = torch.rand(3, 5, 3, 16, 16)
    data = pictures(x)
    torch.testing.assert_close(
        features(data, "frame:which=middle"), torch.nn.functional.adaptive_avg_pool2d(x[:, 2], 8).flatten(1)
    )
    assert [s.name for s in standard(data)[0]] == ["frame:which=middle", "frame:which=mean"]
