"""Hugging Face data sets on disk."""

import numpy as np
import pytest
from PIL import Image

from unskew.data import load


def test_hugging_face_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {
        "image": [Image.fromarray(np.full((8, 8, 3), 10 * k, np.uint8)) for k in range(20)],
        "label": [0, 1] * 10, "site": ["x", "y"] * 10,
    }  # fmt: skip
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["no", "yes"]), "site": datasets.Value("string")}
    )
    made = datasets.Dataset.from_dict(rows, features=features)
    made.save_to_disk(str(tmp_path / "one"))
    data = load(tmp_path / "one", bias="site")
    assert data.classes == ("no", "yes")
    assert data.shape == (3, 8, 8)
    assert data.inputs.x[:, 0, 0, 0].tolist() == [10 * k for k in range(20)]
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(str(tmp_path / "two"))
    two = load(tmp_path / "two")
    assert [len(two.rows(s)) for s in ("train", "val", "test")] == [18, 2, 20]
    datasets.DatasetDict({"train": made, "validation": made, "val": made}).save_to_disk(str(tmp_path / "three"))
    three = load(tmp_path / "three", holdout=0)
    assert [len(three.rows(s)) for s in ("train", "val")] == [20, 40]  # neither name loses the rows of the other
