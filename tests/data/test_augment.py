"""Augmentation: its closed forms against torch's grid and Python's own colour circle."""

import colorsys
import math

import pytest
import torch
import torch.nn.functional as F

from unskew.data.augment import PRESETS, TRIES, affine, augment, crops, sampling_grid, turn_colours


def test_the_grid_is_that_of_torch():
    matrix = affine(torch.rand(5, 7, generator=torch.Generator().manual_seed(0)), PRESETS["pgd"])
    torch.testing.assert_close(sampling_grid(matrix, 6, 9), F.affine_grid(matrix, [5, 3, 6, 9], align_corners=False))


def test_colours_turn_as_in_pythons_own_module():
    draws = torch.Generator().manual_seed(0)
    x = torch.rand(40, 3, 2, 3, generator=draws, dtype=torch.float64)
    x[:, :, 0, 0] = 0.4  # grey
    x[:, :, 0, 1] = 0  # black
    x[:, :2, 0, 2] = x[:, :1, 0, 2]  # two channels alike
    hue, saturation = (torch.rand(40, generator=draws, dtype=torch.float64) * k for k in (1, 3))
    found = turn_colours(x, hue - 0.5, saturation)
    for i in range(len(x)):
        for row, column in ((a, b) for a in range(2) for b in range(3)):
            h, s, v = colorsys.rgb_to_hsv(*x[i, :, row, column].tolist())
            told = colorsys.hsv_to_rgb((h + float(hue[i]) - 0.5) % 1, min(1, s * float(saturation[i])), v)
            assert found[i, :, row, column].tolist() == pytest.approx(told, abs=1e-12)


def test_no_turn_changes_nothing_and_frames_of_a_clip_turn_alike():
    x = torch.rand(4, 3, 5, 5)
    torch.testing.assert_close(turn_colours(x, torch.zeros(4), torch.ones(4)), x)
    clips = x[:, None].repeat(1, 2, 1, 1, 1)
    changed = augment(clips, PRESETS["pgd"], seed=0, step=3, rows=4, mine=slice(0, 4))
    assert torch.equal(changed[:, 0], changed[:, 1])
    assert torch.equal(changed[:, 0], augment(x, PRESETS["pgd"], seed=0, step=3, rows=4, mine=slice(0, 4)))
    assert not torch.equal(changed[:, 0], x)


def test_crops_are_those_of_random_resized_crop():
    """Against a loop over single draws, and against the share of whole images by the integral of the paper's ranges."""
    how, rows = PRESETS["pgd"], 4000
    draws = torch.rand(rows, TRIES + 1, 2, generator=torch.Generator().manual_seed(3))
    found = crops(draws, how, 28, 28)
    for row, (width, height, x, y) in zip(draws[:200].tolist(), found[:200].tolist(), strict=True):
        expected = (1.0, 1.0)
        for u, v in row[:-1]:
            area, ratio = 0.9 + 0.2 * u, (3 / 4) * (16 / 9) ** v
            sides = (area * ratio) ** 0.5, (area / ratio) ** 0.5
            if max(sides) <= 1:
                expected = sides
                break
        assert (width, height) == pytest.approx(expected, abs=1e-5)
        assert abs(x) + width <= 1 + 1e-6  # inside the image, whose grid runs from -1 to 1
        assert abs(y) + height <= 1 + 1e-6
    whole = float((found[:, :2] == 1).all(1).float().mean())
    fits = (0.1 + 0.9 * math.log(0.9)) / (0.2 * math.log(4 / 3))  # area and aspect with area * max(r, 1 / r) <= 1
    assert whole == pytest.approx((1 - fits) ** TRIES, abs=0.03)


def test_an_image_of_another_aspect_falls_back_to_the_largest_centred_crop():
    never = torch.full((1, TRIES + 1, 2), 0.999)
    assert crops(never, PRESETS["pgd"], 100, 300).tolist() == [pytest.approx([4 / 9, 1.0, 0.0, 0.0])]
    assert crops(never, PRESETS["pgd"], 300, 100).tolist() == [pytest.approx([1.0, 4 / 9, 0.0, 0.0])]
