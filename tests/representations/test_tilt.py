"""A grating at a known angle: the harmonics are those of that angle."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.tilt import Config, look


@pytest.mark.parametrize("degrees", [-6, 0, 4])
def test_harmonics_of_a_grating(degrees):
    v, u = np.mgrid[:128, :128]
    angle = np.radians(degrees)
    wave = 128 + 80 * np.sin((u * np.cos(angle) + v * np.sin(angle)) / 8)
    found = look(Picture(np.rint(wave).astype(np.uint8)[..., None].repeat(3, 2)), Config())
    expected = [f(4 * k * angle) for k in (1, 2) for f in (np.cos, np.sin)]
    assert found[:4].tolist() == pytest.approx(expected, abs=0.03)
