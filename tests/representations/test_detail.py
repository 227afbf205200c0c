"""The noise mask against SciPy's convolution; blur, noise and sharpening move the numbers in their direction."""

import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy.signal import convolve2d

from unskew.data.native import Picture
from unskew.representations.detail import Config, look, noise_of, typical


def picture(seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    smooth = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize((96, 96), Image.Resampling.BICUBIC)
    return Image.fromarray(np.clip(np.asarray(smooth) + noise * rng.standard_normal((96, 96, 1)), 0, 255).astype(np.uint8))


def numbers(image):
    return look(Picture(np.asarray(image)), Config())


def test_the_mask_is_the_outer_product_of_second_differences():
    grey = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    mask = np.outer([1, -2, 1], [1, -2, 1])
    assert noise_of(grey) == pytest.approx(convolve2d(grey, mask, mode="valid"), abs=1e-5)


def test_the_median_is_that_of_the_noise():
    # The mask has norm 6, and the median of |N(0, s)| is 0.6745 s; grey of one noise for all channels keeps s.
    found = numbers(
        Image.fromarray(
            (128 + 8 * np.random.default_rng(0).standard_normal((256, 256, 1))).clip(0, 255).astype(np.uint8).repeat(3, 2)
        )
    )
    assert np.exp(found[12]) == pytest.approx(6 * 8 * 0.6745, rel=0.05)


def test_blur_and_sharpening_go_opposite_ways():
    plain = picture(noise=5)
    steps = [
        numbers(i)[0]
        for i in (plain.filter(ImageFilter.GaussianBlur(1)), plain, plain.filter(ImageFilter.UnsharpMask(2, 150, 0)))
    ]
    assert steps == sorted(steps)
    assert steps[2] - steps[0] > 0.5


def test_typical_is_the_median_of_tile_means():
    values = np.random.default_rng(0).random((62, 50)).astype(np.float32)
    tiles = [values[a : a + 10, b : b + 8].mean() for a in range(0, 60, 10) for b in range(0, 48, 8)]
    assert typical(values) == pytest.approx(np.median(tiles), rel=1e-5)
    assert typical(values[:4, :4]) == pytest.approx(values[:4, :4].mean(), rel=1e-5)
