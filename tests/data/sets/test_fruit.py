"""fruit: classes of both levels, splits as packaged, photographs that occur twice kept once."""

import io

import polars as pl
import pytest
from PIL import Image

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.sets import fruit


def photograph(grey):
    held = io.BytesIO()
    Image.new("RGB", (12, 16), (grey, grey, grey)).save(held, "png")
    return held.getvalue()


@pytest.fixture
def packed(tmp_path, monkeypatch):
    rows = [("apple", "fruit", "train", 10), ("milk", "carton", "train", 20), ("pear", "fruit", "val", 30),
            ("apple", "fruit", "test", 40), ("milk", "carton", "test", 20)]  # fmt: skip
    pl.DataFrame(
        {
            "finegrained_cat": [r[0] for r in rows],
            "coarse_cat": [r[1] for r in rows],
            "dataset": [r[2] for r in rows],
            "image_data": [photograph(r[3]) for r in rows],
        }
    ).write_parquet(tmp_path / "images2.parquet")
    monkeypatch.setattr(fruit, "fetch", lambda folder, remotes: (tmp_path / "images2.parquet",))


@pytest.mark.parametrize(
    ("level", "classes", "y"), [("coarse", ("carton", "fruit"), [1, 0, 1, 1]), ("fine", ("apple", "milk", "pear"), [0, 1, 2, 0])]
)
def test_both_levels(packed, level, classes, y):
    data = load(f"fruit:level={level},size=8")
    assert data.name == f"fruit-{level}"
    assert data.classes == classes
    assert data.y.tolist() == y
    assert data.shape == (3, 8, 8)
    # The second carton is the first one byte for byte, and is left out.
    assert data.inputs.x.flatten(1).float().mean(1).tolist() == [10, 20, 30, 40]
    assert [data.rows(s).tolist() for s in ("train", "val", "test")] == [[0, 1], [2], [3]]


def test_a_size_that_shows_nothing_is_refused():
    with pytest.raises(UserError, match="size=4: must be at least 8"):
        load("fruit:size=4")
