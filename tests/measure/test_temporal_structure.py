"""The temporal structure score of clips, by hand."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure import temporal_structure_score


def test_temporal_structure():
    clips = torch.arange(4.0).view(1, 4, 1, 1, 1).expand(3, -1, 1, 2, 2)
    assert temporal_structure_score(lambda x: x.mean(1).flatten(1), [clips]).value == 0  # order is averaged away
    # The first frame forward is 0, backward 3, in each of four pixels: distance sqrt(4 * 9).
    assert temporal_structure_score(lambda x: x[:, 0].flatten(1), [clips, clips]).value == pytest.approx(6)
    with pytest.raises(UserError, match="shape"):
        temporal_structure_score(lambda x: x, [torch.rand(2, 3)])
