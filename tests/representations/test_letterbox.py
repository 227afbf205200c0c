import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.letterbox import Config, look


def test_bars_are_counted_on_their_own_side():
    pixels = np.random.default_rng(0).integers(0, 256, (80, 100, 3), dtype=np.uint8)
    pixels[:10] = 0
    pixels[-4:] = 255
    top, bottom, left, right = look(Picture(pixels), Config()).reshape(4, 5)
    assert top[:2].tolist() == pytest.approx([10 / 80, 1])
    assert bottom[:2].tolist() == pytest.approx([4 / 80, 1])
    assert bottom[3] == pytest.approx(255, abs=0.1)
    assert left[:2].tolist() == right[:2].tolist() == [0, 0]


def test_a_blank_picture_is_all_bar_and_no_error():
    found = look(Picture(np.full((64, 64, 3), 7, dtype=np.uint8)), Config()).reshape(4, 5)
    assert found[:, 0].tolist() == [0.5] * 4
