"""Tiles against a loop, and a grey mark of four pixels that no mean tells apart."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.marks import Config, look, tiles


def test_tiles_are_means_of_their_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 80, 3), dtype=np.uint8)
    found = tiles(Picture(pixels), 8)
    part = pixels[8:16, 20:30].astype(float)
    assert found[1, 2, 0] == pytest.approx((part @ [0.299, 0.587, 0.114]).mean() / 64, rel=1e-5)
    assert found[1, 2, 2] == pytest.approx(np.log((part.max(2) - part.min(2)).mean() + 1), rel=1e-5)


def test_a_flat_square_counts_in_the_bin_of_its_level_and_corner():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    pixels[-4:, -4:] = 128
    bins = look(Picture(pixels), Config("corners"))[32:].reshape(4, 16)  # top left, top right, bottom left, bottom right
    assert bins[3].argmax() == 8
    assert bins[3, 8] == pytest.approx(1)
    assert bins[:3].max() < 0.01
