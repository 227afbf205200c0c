"""Patterns of two sensors without a label, against a loop; places that recur, by hand."""

import numpy as np
import torch

from unskew.data.native import Picture
from unskew.representations import sensor
from unskew.representations.sensor import SIDE, Config, agreement, far_correlation, here, look, outliers, residual


def patterns(rest):
    return agreement(sensor.patterns(rest), rest, torch.arange(len(rest)))


def recurring(places):
    return here(sensor.recurring(places), places)


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
    rest = torch.randn(7, SIDE * SIDE, generator=torch.Generator().manual_seed(0))
    centred = rest - rest.mean(0)
    unit = centred / centred.norm(dim=1, keepdim=True)
    agree = torch.tensor([[float(unit[i] @ unit[j]) if i != j else 0.0 for j in range(7)] for i in range(7)])
    values = torch.linalg.eigvalsh(agree.double())[-6:]
    # K u = lambda u: a score is the eigenvalue times an entry of a unit vector.
    torch.testing.assert_close(patterns(rest).double().norm(dim=0), values.abs(), rtol=1e-4, atol=1e-5)


def test_aligned_subjects_are_no_sensor():
    rng = np.random.default_rng(0)
    cell = np.zeros((96, 96, 1))
    cell[20:24], cell[50:53] = 60, 60  # bars of a solar cell, say, in one class of two
    pictures = [120 + cell * (k % 2) + 3 * rng.standard_normal((96, 96, 1)) for k in range(60)]
    block = torch.from_numpy(np.stack([look(Picture(p.astype(np.uint8).repeat(3, 2)), Config()) for p in pictures])).float()
    scores = patterns(block)
    assert float(scores[:, -1].abs().max()) == 0.0  # the bars lead, and are left out
    assert float(scores.abs().max()) < 0.3


def test_pixels_far_apart_are_alike_in_stripes_and_not_in_noise():
    noise = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert far_correlation(noise) < 0.1
    by_hand = [np.corrcoef(noise[: SIDE - d, : SIDE - d].flatten(), noise[d:, d:].flatten())[0, 1] for d in range(3, 9)]
    assert far_correlation(noise) >= max(map(abs, by_hand)) - 0.01
    stripes = noise + 2 * torch.randn(SIDE, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert 0.6 < far_correlation(stripes) < 1.0  # 4 of 5 parts of the variance are shared along a row


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


def test_a_row_that_was_not_in_the_sample_is_compared_with_all_of_it():
    rest = torch.randn(9, SIDE * SIDE, generator=torch.Generator().manual_seed(1))
    learnt = sensor.patterns(rest[:7])
    got = agreement(learnt, rest, torch.tensor([*range(7), -1, -1]))
    torch.testing.assert_close(got[:7], patterns(rest[:7]))
    mean = rest[:7].mean(0)
    unit = torch.nn.functional.normalize(rest - mean, dim=1)
    agree = (unit[:7] @ unit[:7].T).fill_diagonal_(0)
    vectors = torch.linalg.eigh(agree.double())[1][:, -6:].float()
    expected = [sum(float(unit[k] @ unit[j]) * vectors[j] for j in range(7)) for k in (7, 8)]
    torch.testing.assert_close(got[7:], torch.stack(expected), rtol=1e-4, atol=1e-5)


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
