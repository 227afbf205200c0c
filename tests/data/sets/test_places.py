"""places: exact shares, equal test groups, sources kept apart, tints to the pixel."""

import itertools

import numpy as np
import pytest
import torch

from tests.support.sets import use_small_sources
from unskew.core.errors import UserError
from unskew.data import bases, cifar, load
from unskew.data.sets import places

SMALL = "rows=300,test=4,size=24"


@pytest.fixture(autouse=True)
def small_sources(monkeypatch):
    use_small_sources(monkeypatch)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("shortcuts", ["ground", "ground,tint"])
def test_shares_are_exact_and_test_groups_equal(classes, shortcuts):
    data = load(f"places:classes={classes},shortcuts={shortcuts},ratio=0.9,{SMALL}")
    columns = shortcuts.split(",")
    assert data.bias_names == tuple(columns)
    assert data.bias_sizes == (classes,) * len(columns)
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [300, 30, 4 * classes ** (1 + len(columns))]
    for split, k in itertools.product(("train", "val"), range(len(columns))):
        rows = data.rows(split)
        for c in range(classes):
            value = data.bias[rows, k][data.y[rows] == c]
            assert len(value) in (len(rows) // classes, len(rows) // classes + 1)
            assert int((value == c).sum()) == round(0.9 * len(value))
    assert data.group[data.rows("test")].bincount().tolist() == [4] * classes ** (1 + len(columns))
    for table in data.aligned_by_design:
        torch.testing.assert_close(table, torch.eye(classes, dtype=torch.bool))


def test_two_shortcuts_fail_on_different_rows():
    data = load("places:shortcuts=ground,tint,ratio=0.8,rows=2000,test=4,size=24")
    train = data.rows("train")
    conflicting = data.bias[train] != data.y[train, None]
    assert conflicting.sum(0).tolist() == [400, 400]
    # Independent draws: 0.2 * 0.2 of 2,000 rows conflict in both, with a standard deviation of 8 (hypergeometric, two classes).
    assert abs(int(conflicting.all(1).sum()) - 80) < 4 * 8


def test_ratio_and_rows_leave_the_test_alone():
    one, twin = load(f"places:{SMALL}"), load("places:ratio=0.5,rows=200,test=4,size=24")
    test, others = one.rows("test"), twin.rows("test")
    assert torch.equal(one.inputs.x[test], twin.inputs.x[others])
    assert torch.equal(one.bias[test], twin.bias[others])
    train = twin.rows("train")
    assert twin.group[train].bincount().tolist() == [50, 50, 50, 50]


def test_photographs_of_a_split_are_its_own_and_of_the_right_ground(monkeypatch):
    n = 2000
    number = torch.arange(n)
    y = number[torch.randperm(n, generator=torch.Generator().manual_seed(1))] % 10
    wet = torch.isin(y, torch.tensor([0, 8]))  # airplane, ship
    # Every photograph has one colour, which tells its number: red counts hundreds; blue makes it water or land.
    plain = torch.stack([number // 100 + 20, number % 100, torch.where(wet, 200, 0)], 1).to(torch.uint8)
    x = plain[:, :, None, None].expand(n, 3, 32, 32).contiguous()
    empty = bases.Base(torch.zeros(n, 28, 28, dtype=torch.uint8), y, 1500)
    monkeypatch.setattr(places, "base", lambda name: empty)
    monkeypatch.setattr(places, "cifar10", lambda: cifar.Photographs(x, y, 1500))
    data = load(f"places:{SMALL},ratio=0.7")
    colours = data.inputs.x.flatten(2)
    assert bool((colours == colours[:, :, :1]).all())  # a garment without a lit pixel leaves the photograph as it was
    seen = (colours[:, 0, 0].long() - 20) * 100 + colours[:, 1, 0].long()
    used = {split: set(seen[data.rows(split)].tolist()) for split in ("train", "val", "test")}
    assert not used["train"] & used["val"]
    assert not (used["train"] | used["val"]) & used["test"]
    assert min(used["test"]) >= 1500 > max(used["train"] | used["val"])
    shown = [cifar.NAMES[int(c)] for c in y[seen]]
    for name, ground in zip(shown, data.bias[:, 0].tolist(), strict=True):
        assert name in (("ship", "airplane"), ("deer", "frog", "horse"))[ground]
    # 150 rows of a ground, 270 photographs of water: none is used twice.
    water = seen[data.rows("train")][data.bias[data.rows("train"), 0] == 0]
    assert len(set(water.tolist())) == len(water)


def test_garments_of_the_test_are_not_those_of_the_training(monkeypatch):
    y = torch.arange(2000)[torch.randperm(2000, generator=torch.Generator().manual_seed(1))] % 10
    lit = torch.zeros(2000, 28, 28, dtype=torch.uint8)
    lit[1500:] = 255
    monkeypatch.setattr(places, "base", lambda name: bases.Base(lit, y, 1500))
    black = torch.zeros(2000, 3, 32, 32, dtype=torch.uint8)
    monkeypatch.setattr(places, "cifar10", lambda: cifar.Photographs(black, y, 1500))
    monkeypatch.setattr(places, "shows", lambda ground, scenes, photographs: y >= 0)
    data = load("places:rows=300,test=50,size=64")
    assert int(data.inputs.x[data.split < 2].max()) == 0
    pictures = data.inputs.x[data.rows("test")].numpy()
    # A fully lit garment is a square of one colour, of 0.5 to 0.75 of the side; a turn may push its corners out of the picture.
    for picture in pictures:
        covered = (picture == picture.max((1, 2), keepdims=True)).all(0)
        assert 0.22 < covered.mean() < 0.57
        assert picture.max((1, 2)).min() >= round(0.25 * 255)
    # A turn leaves the area: the mean of s squared for s uniform on (0.5, 0.75) is 0.396, with a standard deviation of 0.09. The
    # soft edge adds up to a pixel of 28 on each side.
    lit_share = np.mean(pictures.max(1) > 0)
    assert 0.396 - 4 * 0.09 / 200**0.5 < lit_share < 0.396 * (30 / 28) ** 2 + 4 * 0.09 / 200**0.5


def test_a_tint_is_all_that_the_second_shortcut_changes():
    one, both = load(f"places:{SMALL}"), load(f"places:{SMALL},shortcuts=ground,tint")
    train = one.rows("train")
    assert torch.equal(one.y[train], both.y[train])
    assert torch.equal(one.bias[train, 0], both.bias[train, 0])
    assert both.bias_values[1] == ("warm", "cool")
    factors = np.array([[1, 0.75, 0.5], [0.55, 0.75, 1]], dtype=np.float32)[both.bias[train, 1].numpy()]
    expected = np.rint(one.inputs.x[train].numpy() * factors[:, :, None, None])
    np.testing.assert_array_equal(both.inputs.x[train].numpy(), expected)


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("classes=5", "classes=5: must be 2, 3 or 4"),
        ("ratio=1.2", r"ratio=1.2: the share of aligned rows must lie in \[0, 1\]"),
        ("shortcuts=tint", "shortcuts"),
        ("rows=20", "rows must be at least 100"),
        ("size=8", "size at least 24"),
    ],
)
def test_bad_settings_are_one_line(setting, line):
    with pytest.raises(UserError, match=line) as caught:
        load(f"places:{setting}")
    assert "\n" not in str(caught.value)
