"""Folders of classes, with and without splits."""

import pytest

from tests.conftest import write_image
from unskew.core.errors import UserError
from unskew.data import load


def test_class_folder(folder):
    data = load(folder)
    assert data.classes == ("cat", "dog")
    assert data.y.bincount().tolist() == [12, 12]
    assert data.shape == (3, 32, 32)
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [20, 2, 2]
    assert data.inputs.x[data.y == 0].float().mean((0, 2, 3))[0] > 150  # cats are red: pixels belong to their rows


def test_class_folder_with_splits(folder, tmp_path):
    root = tmp_path / "split"
    for split in ("train", "val", "test"):
        for name in ("cat", "dog"):
            for k in range(4):
                write_image(root / split / name / f"{k}.png", (9, 9, 9), seed=k)
    data = load(root)
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [8, 8, 8]
    assert data.classes == ("cat", "dog")


def test_split_folders_must_all_be_splits(tmp_path):
    for name in ("train/a", "train/b", "masks/a"):
        write_image(tmp_path / "p" / name / "1.png", (1, 1, 1))
    with pytest.raises(UserError, match="'masks' is not a split folder"):
        load(tmp_path / "p")
