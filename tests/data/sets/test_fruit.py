"""fruit: classes of both levels, splits as packaged, photographs that occur twice kept once, planted tints."""

import io

import numpy as np
import polars as pl
import pytest
import torch
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


COARSE = {"apple": "fruit", "pear": "fruit", "milk": "carton", "kale": "greens"}
FACTORS = {"warm": (1, 0.75, 0.5), "cool": (0.55, 0.75, 1), "green": (0.65, 1, 0.6)}


@pytest.fixture
def many(tmp_path, monkeypatch):
    """240 photographs, all different: 40 of each fine class for training, 20 for the test, none for validation."""
    rows = [(fine, split) for split, n in (("train", 40), ("test", 20)) for fine in COARSE for _ in range(n)]
    pl.DataFrame(
        {
            "finegrained_cat": [fine for fine, _ in rows],
            "coarse_cat": [COARSE[fine] for fine, _ in rows],
            "dataset": [split for _, split in rows],
            "image_data": [photograph(grey) for grey in range(len(rows))],
        }
    ).write_parquet(tmp_path / "images2.parquet")
    monkeypatch.setattr(fruit, "fetch", lambda folder, remotes: (tmp_path / "images2.parquet",))


@pytest.mark.parametrize("level", ["coarse", "fine"])
def test_tints_have_exact_shares_and_are_exact_on_pixels(many, level):
    plain, data = load(f"fruit:level={level},size=8"), load(f"fruit:level={level},size=8,tint=0.9")
    assert plain.bias_names == ()
    assert data.bias_names == ("tint",)
    assert data.bias_values == (tuple(FACTORS),)
    owners = sorted(set(COARSE.values()))
    fine = [f for n in (40, 20) for f in COARSE for _ in range(n)]
    coarse = torch.tensor([owners.index(COARSE[f]) for f in fine])
    for c, n in enumerate((40, 80, 40)):  # carton, fruit, greens
        trained = data.bias[data.rows("train"), 0][coarse[data.rows("train")] == c].bincount(minlength=3)
        tested = data.bias[data.rows("test"), 0][coarse[data.rows("test")] == c].bincount(minlength=3)
        assert trained[c] == round(0.9 * n)
        assert trained.sum() == n
        assert tested.max() - tested.min() <= 1
        assert tested.sum() == n // 2
    expected = [[COARSE.get(name, name) == owner for owner in owners] for name in data.classes]
    assert data.aligned_by_design[0].tolist() == expected
    factors = np.array(list(FACTORS.values()), dtype=np.float32)[data.bias[:, 0].numpy()]
    np.testing.assert_array_equal(data.inputs.x.numpy(), np.rint(plain.inputs.x.numpy() * factors[:, :, None, None]))


def test_tints_depend_on_the_seed_and_those_of_the_test_not_on_the_share(many):
    one, again, other, twin = (load(f"fruit:size=8,{s}") for s in ("tint=0.9", "tint=0.9", "tint=0.9,seed=1", "tint=0.34"))
    assert one.fingerprint == again.fingerprint
    assert one.fingerprint != other.fingerprint
    test = one.rows("test")
    assert torch.equal(one.inputs.x[test], twin.inputs.x[test])


def test_a_share_outside_of_0_to_1_is_refused():
    with pytest.raises(UserError, match=r"tint=1.5: the share of aligned rows must lie in \[0, 1\]; 0 means no tints"):
        load("fruit:tint=1.5")
