"""Arrays in .npz files: vectors, pictures and clips."""

import numpy as np

from unskew.data import load


def test_npz_of_features_images_and_clips(tmp_path):
    y = np.array([0, 1] * 10)
    for name, shape, expected in [
        ("vectors", (20, 5), (5,)), ("grey", (20, 8, 8), (1, 8, 8)), ("last", (20, 8, 8, 3), (3, 8, 8)),
        ("clips", (20, 4, 3, 8, 8), (4, 3, 8, 8)),
    ]:  # fmt: skip
        np.savez(tmp_path / f"{name}.npz", features=np.random.rand(*shape), y=y, site=np.array(["a", "b"] * 10))
        data = load(tmp_path / f"{name}.npz", bias="site")
        assert data.shape == expected
        assert data.bias_values == (("a", "b"),)
