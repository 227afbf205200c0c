"""CIFAR-10 as packed: one image a row, the training part before the test part."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from unskew.core.errors import UserError
from unskew.data import cifar


def test_photographs_are_the_rows_of_the_pictures_in_order(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 2, 1024, 3), dtype=np.uint8)
    paths = [tmp_path / file.name for file in cifar.CIFAR10]
    for path, rows in zip(paths, pixels, strict=False):
        Image.fromarray(rows).save(path)
    paths[6].write_text(json.dumps([6, 9, 9, 4, 1, 1, 2, 7, 8, 3]))
    paths[7].write_text(json.dumps([3, 8]))
    monkeypatch.setattr(cifar, "fetch", lambda folder, files: paths)
    cifar.cifar10.cache_clear()
    try:
        photographs = cifar.cifar10()
    finally:
        cifar.cifar10.cache_clear()
    assert photographs.num_train == 10
    assert photographs.y.tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3, 3, 8]
    assert photographs.x.shape == (12, 3, 32, 32)
    # Row 3 of the set is the second row of the second picture; pixel (5, 7) is its 5 * 32 + 7th.
    assert photographs.x[3, :, 5, 7].tolist() == pixels[1, 1, 5 * 32 + 7].tolist()
    assert torch.equal(photographs.x[11, :, 31, 31], torch.from_numpy(pixels[5, 1, 1023]))


def test_a_picture_of_another_width_is_refused(tmp_path):
    Image.new("RGB", (100, 3)).save(tmp_path / "rows.png")
    with pytest.raises(UserError, match="rows of 100 pixels, but an image of 32x32 has 1024"):
        cifar.read_rows(tmp_path / "rows.png")
