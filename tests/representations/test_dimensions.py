import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.dimensions import Config, look


def test_by_hand():
    found = look(Picture(np.zeros((100, 200, 3), dtype=np.uint8)), Config())
    assert found.tolist() == pytest.approx([np.log(200), np.log(100), np.log(2), np.log(2), 1, 0], rel=1e-6)
    assert look(Picture(np.zeros((50, 50, 3), dtype=np.uint8)), Config())[2:].tolist() == [0, 0, 0, 1]
