"""Coefficients against SciPy's DCT, tables against Pillow's, and blocks that an earlier save left."""

import io

import numpy as np
import pytest
from PIL import Image
from scipy.fft import dctn

from unskew.data.native import Header, Picture, coefficients, header_of
from unskew.representations.encoder import FORMATS, Config, blocks, levels, look, of_header, rises


def photo():
    rng = np.random.default_rng(0)
    smooth = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).resize((128, 128), Image.Resampling.BICUBIC)
    return Image.fromarray(np.clip(np.asarray(smooth) + 6 * rng.standard_normal((128, 128, 3)), 0, 255).astype(np.uint8))


def saved(image, **how):
    file = io.BytesIO()
    image.save(file, how.pop("format", "JPEG"), **how)
    opened = Image.open(io.BytesIO(file.getvalue()))
    return Picture(np.asarray(opened.convert("RGB")), header_of(opened))


def test_shares_of_small_coefficients_are_those_of_scipy():
    grey = (np.random.default_rng(0).standard_normal((24, 16)) * 2).astype(np.float32)
    radius = np.add.outer(np.arange(8), np.arange(8))

    def shares(starts):
        near = np.mean([np.abs(dctn(grey[a : a + 8, b : b + 8], norm="ortho")) < 0.5 for a, b in starts], axis=0)
        return np.array([near[(radius >= low) & (radius <= high)].mean() for low, high in ((1, 3), (4, 6), (7, 9), (10, 14))])

    expected = shares([(a, b) for a in (0, 8, 16) for b in (0, 8)]) - shares([(4, 4), (12, 4)])
    assert blocks([coefficients(grey, start) for start in (0, 4)]) == pytest.approx(expected, abs=1e-6)


def test_the_header_says_format_and_tables():
    picture = saved(photo(), quality=50)
    found = of_header(picture.header)
    assert found[: len(FORMATS)] == [1, 0, 0, 0, 0, 0]
    assert found[len(FORMATS)] == pytest.approx(np.log(3688 / 64), rel=1e-6)  # annex K's luminance table
    assert of_header(saved(photo(), format="PNG").header)[:2] == [0, 1]


def test_an_earlier_save_leaves_blocks():
    once = saved(photo(), quality=95)
    twice = saved(Image.fromarray(saved(photo(), quality=40).pixels), quality=95)
    one, two = (look(p, Config("blocks")) for p in (once, twice))
    assert two[0] > one[0] + 0.05  # steps between blocks
    assert two[16 + 2] > one[16 + 2]  # more coefficients near 0 on the grid than beside it


def natural(rng, side=96):
    """A picture whose detail falls with frequency, as that of photographs does."""
    waves = np.fft.rfft2(rng.standard_normal((side, side)))
    far = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None]) + 1 / side
    shown = np.fft.irfft2(waves / far**1.2)
    return Image.fromarray(np.clip(128 + 40 * shown / shown.std(), 0, 255).astype(np.uint8)).convert("RGB")


@pytest.mark.parametrize("last", [75, 85, 92])
def test_an_earlier_coarser_save_leaves_gaps_and_a_single_one_does_not(last):
    rng = np.random.default_rng(0)
    for _ in range(20):
        once = natural(rng)
        before = Image.fromarray(saved(once, quality=last - 22).pixels)
        assert not look(saved(once, quality=last), Config("twice")).any()
        assert look(saved(before, quality=last), Config("twice"))[2:].all()


def test_gaps_of_a_jpeg_are_seen_in_a_png_and_not_in_a_drawing():
    rng = np.random.default_rng(1)
    image = saved(natural(rng), quality=60)
    assert look(Picture(image.pixels, Header(kind="PNG")), Config("twice"))[2:].all()
    drawing = np.where(rng.random((12, 12)) < 0.5, 0, 255).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    drawing = np.roll(drawing, 3, (0, 1))[..., None].repeat(3, 2)
    assert not look(Picture(drawing, Header(kind="PNG")), Config("twice")).any()


def test_rises_by_hand():
    counts = np.array([10, 4, 20, 0])
    # Only from 4 to 20: 16 - 2 * sqrt(25) = 6, of 34 counts.
    assert abs(float(rises(counts)) - 6 / 34) < 1e-12


def test_shares_are_medians_over_parts_of_a_large_picture():
    rng = np.random.default_rng(0)
    grey = (rng.standard_normal((72, 104)) * rng.uniform(0.3, 3, (72, 104))).astype(np.float32)
    near = [(np.abs(coefficients(grey, start)) < 0.5).swapaxes(1, 2) for start in (0, 4)]  # (rows, columns, 8, 8)
    band = np.minimum((np.add.outer(np.arange(8), np.arange(8)) - 1) // 3, 3)
    band[0, 0] = -1

    def usual(one):
        high, wide = one.shape[0] // 4, one.shape[1] // 4
        parts = [one[a * high : (a + 1) * high, b * wide : (b + 1) * wide].mean((0, 1)) for a in range(4) for b in range(4)]
        return np.median([[part[band == k].mean() for k in range(4)] for part in parts], axis=0)

    found = blocks([coefficients(grey, start) for start in (0, 4)])
    assert found == pytest.approx(usual(near[0]) - usual(near[1]), abs=1e-6)


def test_levels_count_coefficients_by_steps_of_the_table():
    grey = (np.random.default_rng(0).standard_normal((40, 48)) * 30).astype(np.float32)
    table = range(3, 67)
    both = [coefficients(grey, start) for start in (0, 4)]
    counts = levels(both, table)
    for one, count in zip(both, counts, strict=True):
        for place, frequency in ((0, 1), (5, 3), (13, 4)):
            steps = np.abs(np.rint(one[:, frequency // 8, :, frequency % 8] / table[frequency]))
            assert count[place].tolist() == [int((steps == k).sum()) for k in range(1, 25)]
