"""Levels counted by hand; a shift of six levels moves every percentile by six and empties the darkest ones."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.tone import ENDS, SHARES, Config, look


def test_percentiles_are_those_of_numpy():
    pixels = np.random.default_rng(0).integers(0, 200, (40, 50, 3), dtype=np.uint8)
    expected = np.quantile(pixels.ravel(), SHARES, method="inverted_cdf")
    found = look(Picture(pixels), Config())
    assert found[: len(SHARES)].tolist() == expected.tolist()
    assert found[25] == pytest.approx(pixels.mean(), rel=1e-5)
    assert found[26] == pytest.approx(pixels.std(), rel=1e-5)


def test_a_small_shift_shows_at_the_dark_end():
    pixels = np.random.default_rng(0).integers(0, 240, (40, 50, 3), dtype=np.uint8)
    before, after = look(Picture(pixels), Config()), look(Picture(pixels + 6), Config())
    assert (after - before)[: len(SHARES)].tolist() == [6] * len(SHARES)
    dark = len(SHARES) + int((ENDS == 5).nonzero()[0][0])
    assert before[dark] == pytest.approx(np.sqrt((pixels <= 5).mean()), rel=1e-5)
    assert after[dark] == 0


def test_stretched_contrast_leaves_empty_levels():
    pixels = np.random.default_rng(0).integers(60, 160, (60, 60, 3), dtype=np.uint8)
    stretched = (pixels.astype(int) * 2 - 100).astype(np.uint8)  # every second level
    gaps = [float(look(Picture(p), Config())[-2]) for p in (pixels, stretched)]
    assert gaps[0] == 0
    assert gaps[1] == pytest.approx(0.5, abs=0.01)
