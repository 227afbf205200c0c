"""A surface of known coefficients comes back."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.lighting import Config, look, surface


def test_a_known_surface_is_recovered():
    side = (np.arange(16) + 0.5) / 8 - 1
    v, u = np.meshgrid(side, side, indexing="ij")
    beta = np.array([0.3, -0.2, 0.1, 0.05, -0.07])
    values = 4 + beta[0] * u + beta[1] * v + beta[2] * u**2 + beta[3] * v**2 + beta[4] * u * v
    assert surface() @ values.ravel() == pytest.approx(beta, abs=1e-5)


def test_light_from_the_right_is_a_slope_across():
    across = np.linspace(60, 180, 128)
    pixels = np.repeat(np.repeat(across[None, :, None], 128, 0), 3, 2).astype(np.uint8)
    right, left = look(Picture(pixels), Config()), look(Picture(pixels[:, ::-1].copy()), Config())
    assert right[0] > 0.3
    assert right[0] == pytest.approx(-left[0], abs=1e-4)
    assert abs(right[1]) < 1e-4


def test_the_brightest_levels_fall_off_with_the_light():
    pixels = np.random.default_rng(0).integers(0, 256, (128, 128, 3))
    pixels[:, :, 0] = np.where(np.random.default_rng(1).random((128, 128)) < 0.02, 255, pixels[:, :, 0])
    dimmed = (pixels * np.linspace(0.6, 1, 128)[None, :, None]).astype(np.uint8)
    columns = look(Picture(dimmed), Config())[15:23]
    # The last column of pixels in each of eight strips is the brightest that white can be there.
    assert columns == pytest.approx(np.linspace(0.6, 1, 128)[15::16] - 1, abs=0.02)
