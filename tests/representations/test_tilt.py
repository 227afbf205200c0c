"""A grating at a known angle: the harmonics are those of that angle."""

import numpy as np
import pytest

from unskew.data.native import Picture
from unskew.representations.tilt import Config, gradients, look


@pytest.mark.parametrize("degrees", [-6, 0, 4])
def test_harmonics_of_a_grating(degrees):
    v, u = np.mgrid[:128, :128]
    angle = np.radians(degrees)
    wave = 128 + 80 * np.sin((u * np.cos(angle) + v * np.sin(angle)) / 8)
    found = look(Picture(np.rint(wave).astype(np.uint8)[..., None].repeat(3, 2)), Config())
    expected = [f(4 * k * angle) for k in (1, 2) for f in (np.cos, np.sin)]
    assert found[:4].tolist() == pytest.approx(expected, abs=0.03)


def test_harmonics_are_weighted_means_of_powers():
    picture = Picture(np.random.default_rng(0).integers(0, 256, (60, 50, 3), dtype=np.uint8))
    across, down = gradients(picture.grey.astype(float), 1)
    size = np.hypot(across, down) + 1e-3
    powers = [(size * ((across + 1j * down) / size) ** (4 * k)).sum() / size.sum() for k in (1, 2, 3, 4)]
    assert look(picture, Config()).tolist() == pytest.approx([part for p in powers for part in (p.real, p.imag)], abs=1e-5)
