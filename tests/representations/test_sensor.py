"""Patterns of two sensors without a label, against a loop; places that recur, by hand."""

import numpy as np
import torch

from unskew.data.native import Picture
from unskew.representations.sensor import Config, look, outliers, patterns, recurring, residual


def shots(n=60, strength=0.03):
    """Smooth scenes through two sensors in turn."""
    rng = np.random.default_rng(0)
    sensors = rng.standard_normal((2, 96, 96, 1))
    for k in range(n):
        scene = (
            120
            + 40 * np.sin(np.linspace(rng.uniform(0, 6), rng.uniform(7, 12), 96))[:, None, None]
            + 3 * rng.standard_normal((96, 96, 1))
        )
        yield Picture(np.clip(scene * (1 + strength * sensors[k % 2]), 0, 255).astype(np.uint8).repeat(3, 2))


def test_two_sensors_are_told_apart_blind():
    block = torch.from_numpy(np.stack([look(p, Config()) for p in shots()])).float()
    scores = patterns(block)
    first = scores[:, -1].sign()
    assert bool((first[::2] == first[0]).all())
    assert bool((first[1::2] == -first[0]).all())
    noise = patterns(torch.from_numpy(np.stack([look(p, Config()) for p in shots(strength=0.0)])).float())
    assert noise.abs().max() < scores[:, -1].abs().min()


def test_no_row_is_compared_with_itself():
    rest = torch.randn(7, 50, generator=torch.Generator().manual_seed(0))
    centred = rest - rest.mean(0)
    unit = centred / centred.norm(dim=1, keepdim=True)
    agree = torch.tensor([[float(unit[i] @ unit[j]) if i != j else 0.0 for j in range(7)] for i in range(7)])
    values = torch.linalg.eigvalsh(agree.double())[-6:]
    # K u = lambda u: a score is the eigenvalue times an entry of a unit vector.
    torch.testing.assert_close(patterns(rest).double().norm(dim=0), values.abs(), rtol=1e-4, atol=1e-5)


def test_a_hot_pixel_is_noted_at_its_place():
    grey = np.full((40, 50), 100, dtype=np.float32)
    grey[12, 30] = 160
    assert sorted(outliers(grey).tolist())[-2:] == [0, 11 * 1024 + 29 + 1]
    assert residual(grey).shape == (64 * 64,)


def place(row, column):
    return row * 1024 + column + 1


def test_the_places_that_recur_most_come_first():
    a, b, c = place(5, 5), place(5, 40), place(30, 30)
    places = torch.tensor([[a, b, 0], [a, 0, 0], [b, a, c], [0, 0, 0]])
    assert recurring(places)[:, :3].tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert recurring(places).shape == (4, 8)


def test_places_side_by_side_are_not_single_pixels():
    stamp, pixel, rare = [place(5, 5), place(5, 8), place(7, 6)], place(30, 30), place(31, 30)
    places = torch.tensor([[*stamp, pixel]] * 4 + [[rare, pixel, 0, 0]])
    assert recurring(places)[:, :2].tolist() == [[1, 0]] * 5  # the pixel stays, as what is beside it is rare


def test_pictures_smaller_than_the_part_that_is_compared():
    small = residual(np.random.default_rng(0).random((32, 40)).astype(np.float32) * 255)
    assert small.shape == (64 * 64,)
    assert not small.reshape(64, 64)[28:].any()


def test_outliers_are_those_of_a_loop_over_all_pixels():
    rng = np.random.default_rng(0)
    grey = (100 + 3 * rng.standard_normal((40, 50))).astype(np.float32)
    grey[rng.integers(0, 40, 9), rng.integers(0, 50, 9)] += rng.choice([-30, 14, 60], 9)
    expected = set()
    for row in range(1, 39):
        for column in range(1, 49):
            around = np.delete(grey[row - 1 : row + 2, column - 1 : column + 2].ravel(), 4)
            if max(grey[row, column] - around.max(), around.min() - grey[row, column]) > 12:
                expected.add((row - 1) * 1024 + column)
    found = outliers(grey)
    assert 0 < len(expected) <= 12
    assert set(found[found > 0].astype(int).tolist()) == expected
