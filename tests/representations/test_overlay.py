"""A mark among natural pictures is found without a label; the largest eigenvalue against scipy; what may be the subject is left alone."""

from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.linalg import eigh
from scipy.ndimage import uniform_filter

from unskew.data.native import Picture
from unskew.representations.overlay import BLOCK, BLOCKS, CORNER, RIDGE, Config, _leading, finish, learn, look, note, score, seen


def gather(block, y, cfg):
    return score(learn(block, y, cfg), block, torch.arange(len(block)), cfg)


def scene(rng, side=96):
    """Smooth random ground with noise: the same statistics everywhere."""
    small = rng.uniform(40, 215, (side // 8, side // 8, 3)).astype(np.uint8)
    ground = np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC), dtype=np.float64)
    return ground + rng.normal(0, 6, (side, side, 1))


def scores(pictures):
    block = torch.from_numpy(np.stack([look(Picture(np.clip(p, 0, 255).astype(np.uint8)), Config()) for p in pictures]))
    return gather(block, torch.zeros(len(block)), Config())


def test_rows_with_a_mark_are_told_from_rows_without():
    rng = np.random.default_rng(0)
    pictures, marked = [scene(rng) for _ in range(160)], np.arange(160) % 3 == 0
    for k in marked.nonzero()[0]:
        pictures[k][-7:-3, -9:-3] = 128
    found = scores(pictures)
    assert found.shape == (160, 16)
    size = found[:, 8]  # of the first block's score
    assert float(size[torch.from_numpy(marked)].median()) > 2 * float(size[torch.from_numpy(~marked)].quantile(0.9))
    assert float(scores([scene(rng) for _ in range(160)]).abs().max()) == 0.0


def test_a_mark_of_a_large_picture_is_seen_reduced():
    rng = np.random.default_rng(1)
    pictures = [scene(rng, 400) for _ in range(80)]
    for k in range(0, 80, 2):
        pictures[k][12:52, 16:56] = pictures[k][12:52, 16:56] * 0.4 + 150  # translucent, and wider than the blocks at full size
    found = scores(pictures)[:, 8]
    assert float(found[::2].min()) > float(found[1::2].max())


def test_subjects_on_a_plain_ground_are_no_marks():
    rng = np.random.default_rng(2)
    pictures = []
    for k in range(160):
        picture = np.full((96, 96, 3), 255.0)
        reach = 6 if k % 2 else 20  # one class fills the picture, the other does not
        picture[reach:-reach, reach:-reach] = scene(rng)[reach:-reach, reach:-reach]
        pictures.append(picture)
    assert float(scores(pictures).abs().max()) == 0.0


def test_a_camera_that_never_moves_leaves_no_marks():
    rng = np.random.default_rng(3)
    still = scene(rng)
    pictures = []
    for k in range(120):
        picture = still + rng.normal(0, 3, still.shape)
        picture[30:70, 30:70] = scene(rng)[30:70, 30:70]
        if k % 2:
            picture[:30, :30] = scene(rng)[:30, :30]  # something stands before the ground
        pictures.append(picture)
    assert float(scores(pictures).abs().max()) == 0.0


def test_a_subject_that_is_aligned_to_the_pixel_and_reaches_an_edge_is_no_mark():
    rng = np.random.default_rng(5)
    subject = np.zeros((96, 96, 1))
    subject[16:80, 16:80] = rng.standard_normal((64, 64, 1))
    subject[:16, 30:60] = rng.standard_normal((16, 30, 1))
    pictures = [scene(rng) + 10 * subject * (k % 2 == 0) for k in range(160)]
    assert float(scores(pictures).abs().max()) == 0.0
    subject[16:80, 16:80] = 0  # without the middle it is a mark
    pictures = [scene(rng) + 10 * subject * (k % 2 == 0) for k in range(160)]
    assert float(scores(pictures).abs().max()) > 1.0


def test_subjects_that_share_a_bar_across_the_middle_and_their_corners_leave_no_marks():
    rng = np.random.default_rng(6)
    pictures = [scene(rng) for _ in range(500)]
    for k, picture in enumerate(pictures):
        picture[44:47] = 250  # every subject has it
        if k % 2:
            for rows in (slice(0, 6), slice(-6, None)):
                for columns in (slice(0, 6), slice(-6, None)):
                    picture[rows, columns] = 0  # rounded corners of one kind of subject
    assert float(scores(pictures).abs().max()) == 0.0


def test_a_stamp_is_seen_where_some_pictures_are_noisy_and_most_are_soft():
    rng = np.random.default_rng(7)
    pictures = []
    for k in range(300):
        picture = uniform_filter(scene(rng), (7, 7, 0)) + (rng.normal(0, 40, (96, 96, 1)) if k % 13 == 0 else 0)
        if k % 2:
            picture[86:93, 4:44:4] = 250
        pictures.append(picture)
    found = scores(pictures)
    assert float(found[1::2].abs().max(1).values.mean()) > float(found[::2].abs().max(1).values.mean()) + 1


def test_lambda_is_the_largest_generalised_eigenvalue():
    second = torch.stack([a @ a.T / 90 for a in torch.randn(5, 64, 90, generator=torch.Generator().manual_seed(0))])
    found = _leading(second, 7)
    assert [place for _, place, _ in found] == [7, 8, 9, 10, 11]
    others = second[[0, 1, 3, 4]].double().mean(0).numpy()
    base = others + RIDGE * np.trace(others) / 64 * np.eye(64)
    values, vectors = eigh(second[2].double().numpy(), base)
    value, _, w = found[2]
    assert abs(value - values[-1]) < 1e-9 * values[-1]
    assert abs(abs(float(w.double().numpy() @ base @ vectors[:, -1])) - 1) < 1e-5


def test_blocks_of_small_pictures_and_few_rows_are_empty():
    block = seen(np.zeros((64, 64, 3), np.uint8), 1).reshape(BLOCKS, BLOCK * BLOCK)
    assert block.shape == (4 * CORNER + 16, 64)
    assert not block.any()
    assert not gather(torch.ones(10, 2 * BLOCKS * 64, dtype=torch.int8), torch.zeros(10), Config()).any()  # too few rows


@pytest.mark.parametrize(("height", "width"), [(224, 224), (70, 90), (32, 33), (33, 120), (200, 60)])
def test_residuals_are_those_of_the_formula(height, width):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    picture = Picture(pixels)
    found = finish(np.stack([note(picture, Config())] * 9), Config())
    assert (found == look(picture, Config())).all()  # a batch is what its pictures are, however many are computed together
    block = found[0].reshape(2, BLOCKS, BLOCK, BLOCK)
    assert block[1].any() == (min(height, width) >= 192)
    grey = picture.grey.astype(float)
    rest = residual(grey)
    reach = min(48, min(height, width) // 2 // 8 * 8)
    assert abs(block[0, 0] - 40 * rest[:8, :8]).max() < 0.51  # the first block of the first corner
    assert abs(block[0, CORNER] - 40 * residual(grey[:, ::-1])[:8, :8]).max() < 0.51
    assert block[0, :CORNER].any((1, 2)).sum() == sum(min(a, b) < 2 for a in range(reach // 8) for b in range(reach // 8))
    top, left = (max(0, (side - 34) // 2) for side in (height, width))
    inside = residual(grey[top : top + 34, left : left + 34])[1:33, 1:33]
    expected = np.zeros((32, 32))
    expected[: inside.shape[0], : inside.shape[1]] = inside
    shown = block[0, 4 * CORNER :].reshape(4, 4, 8, 8).swapaxes(1, 2).reshape(32, 32)
    assert abs(shown - 40 * expected).max() < 0.51


def residual(grey):
    around = partial(uniform_filter, size=3, mode="nearest")
    rest = grey - around(grey)
    return np.clip(rest / (np.sqrt(around(rest * rest)) + 1), -3, 3)
