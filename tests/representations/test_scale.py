"""Detail in the middle, or everywhere: moments against a plain sum."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.scale import Config, look


def disc(radius):
    v, u = np.mgrid[-1:1:128j, -1:1:128j]
    inside = np.maximum(np.abs(u), np.abs(v)) < radius
    noise = np.random.default_rng(0).integers(0, 256, (128, 128))
    return Picture(np.where(inside, noise, 128).astype(np.uint8)[..., None].repeat(3, 2))


def test_a_larger_subject_has_its_detail_further_out():
    small, large = look(disc(0.35), Config()), look(disc(0.7), Config())
    # The mean of max(|u|, |v|) over a square of half side r is 2r/3.
    assert small[10] == pytest.approx(2 * 0.35 / 3, abs=0.05)
    assert large[10] == pytest.approx(2 * 0.7 / 3, abs=0.05)
    assert small[4] < large[0] - 1  # hardly any detail in the outer ring
