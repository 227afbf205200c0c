"""Near-duplicate pictures, beside hashes and distances computed in other ways."""

import numpy as np
import pytest
from scipy.fft import dctn
from sklearn.datasets import load_digits

from tests.support.photographs import noise
from unskew.stats import alike
from unskew.stats.alike import Looks, bits_apart, candidates, looks, near_duplicates


def seen(x):
    return looks(x, np.ones(len(x), dtype=bool))


def test_the_hash_is_the_signs_of_the_lowest_cosines():
    grey = noise(5).mean(1).astype(np.float32)
    waves = dctn(grey.astype(float), axes=(1, 2))[:, :8, :8].reshape(5, 64)
    expected = waves > np.median(waves[:, 1:], axis=1, keepdims=True)
    expected[:, 0] = False
    found = np.unpackbits(alike.perceptual_hash(grey).view(np.uint8).reshape(5, 8), axis=1)
    # Scaling of scipy's transform differs by a factor, which moves no sign against the median.
    assert np.array_equal(found.astype(bool), expected)


def test_candidates_are_all_pairs_within_the_radius():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2**63, 60, dtype=np.uint64)
    turned = code.copy()
    for k in range(60):  # copies with 0 to 9 bits turned
        for bit in rng.choice(64, k % 10, replace=False):
            turned[k] ^= np.uint64(1) << np.uint64(bit)
    code = np.concatenate([code, turned])
    found = {(int(i), int(j)) for a, b in candidates(code) for i, j in zip(a, b, strict=True)}
    slow = {(i, j) for i in range(120) for j in range(i + 1, 120) if (int(code[i]) ^ int(code[j])).bit_count() <= alike.RADIUS}
    assert found == slow
    assert len(slow) >= 42  # of each ten copies, those with 0 to 6 bits turned


def test_bits_apart_counts_bits():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2**63, (2, 50), dtype=np.uint64)
    assert bits_apart(a, b).tolist() == [(int(x) ^ int(y)).bit_count() for x, y in zip(a, b, strict=True)]


def test_distance_is_twice_one_minus_the_correlation():
    x = noise(2).reshape(2, -1).astype(np.float32)
    r = np.corrcoef(x)[0, 1]
    assert alike.squared_distance(x[:1], x[1:])[0] == pytest.approx(2 * (1 - r), abs=1e-4)


def test_twins_are_found_and_others_are_not():
    x = noise(300)
    smooth = np.stack([np.kron(x[k, :, :8, :8], np.ones((4, 4), np.uint8)) for k in range(300)])
    brighter = np.clip(smooth[:20].astype(int) * 0.9 + 12, 0, 255).astype(np.uint8)
    found = near_duplicates(seen(np.concatenate([smooth, brighter])))
    assert found[:20].tolist() == found[300:].tolist() == list(range(20))
    assert (found[20:300] == -1).all()


def test_digits_are_not_each_others_twins():
    grey = np.kron(np.minimum(load_digits().images * 16, 255).astype(np.uint8), np.ones((4, 4), np.uint8))
    found = near_duplicates(seen(np.repeat(grey[:, None], 3, 1)))
    assert (found >= 0).mean() < 0.001
    with_copy = near_duplicates(seen(np.repeat(np.concatenate([grey, grey[:5]])[:, None], 3, 1)))
    assert with_copy[-5:].tolist() == [0, 1, 2, 3, 4]


def test_the_same_shape_in_other_colours_is_another_picture():
    grey = np.kron(load_digits().images[:200].astype(np.uint8) * 15, np.ones((4, 4), np.uint8))
    colours = np.array([[1, 0.1, 0.1], [0.1, 1, 0.1]])
    x = np.concatenate([grey[:, None] * c[None, :, None, None] for c in colours]).astype(np.uint8)
    assert (near_duplicates(seen(x)) == -1).all()


def test_flat_pictures_are_like_no_other():
    x = np.full((50, 3, 32, 32), 120, dtype=np.uint8)
    assert (near_duplicates(seen(x)) == -1).all()


def test_a_kind_of_picture_is_not_a_picture_repeated():
    """One pattern with its own grain in four fifths of the rows: no set; the copies among the others stay one."""
    pattern = np.kron(noise(1)[0, :, :8, :8], np.ones((4, 4), np.uint8)).astype(int)
    grain = np.random.default_rng(0).integers(-12, 13, (400, 3, 32, 32))
    repeated = np.clip(pattern + grain, 0, 255).astype(np.uint8)
    others = noise(100, seed=5)
    found = near_duplicates(seen(np.concatenate([repeated, others, others[:3]])))
    assert np.bincount(found[found >= 0]).max() <= 25  # a twentieth of the rows
    assert found[-3:].tolist() == [400, 401, 402]


def test_many_equal_codes_take_no_square_of_time(monkeypatch):
    monkeypatch.setattr(alike, "MOST_PAIRS", 1000)
    code = np.zeros(500, dtype=np.uint64)
    pairs = sum(len(i) for i, _ in candidates(code))
    assert 0 < pairs <= 4 * 8 * 500
    small = noise(500, 16).reshape(500, -1)
    assert (near_duplicates(Looks(code, small, np.ones(500, dtype=bool))) == -1).all()  # equal hashes alone merge nothing
