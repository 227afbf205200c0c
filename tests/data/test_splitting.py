"""Carved splits: whole groups, whole sets of twins, the order of a column or of file names; without any, the draw as it was."""

import datetime
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.support.photographs import noise
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.sources import as_words
from unskew.data.splitting import blocks, carve_splits, single_rows, whole_units


def frame(n=300, **columns):
    rng = np.random.default_rng(0)
    return pl.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "label": [k % 3 for k in range(n)], **columns})


def sides(data, column):
    """The splits in which each value of a column has rows."""
    found = {}
    for value, code in zip(data.columns[column].to_list(), data.split.tolist(), strict=True):
        found.setdefault(value, set()).add(code)
    return found


def drawn_before(y, share, seed):
    """The draw of version 0.2, written down once more."""
    split = torch.zeros(len(y), dtype=torch.long)
    for code, name in ((2, "test"), (1, "val")):
        digest = hashlib.blake2b(repr((seed, "split", name)).encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        train = (split == 0).nonzero().flatten()
        train = train[torch.randperm(len(train), generator=generator)]
        for c in sorted(set(y.tolist())):
            rows = train[y[train] == c]
            split[rows[: max(1, round(share * len(rows)))]] = code
    return split


@pytest.mark.parametrize(("seed", "share"), [(0, 0.1), (3, 0.25)])
def test_without_groups_and_duplicates_the_draw_is_that_of_every_version(seed, share):
    y = torch.tensor([k % 3 if k % 7 else 0 for k in range(200)])
    expected = drawn_before(y, share, seed)
    assert torch.equal(carve_splits(y, torch.zeros_like(y), share, seed)[0], expected)
    pictures = load((noise(200), y.numpy()), holdout=share, seed=seed)  # looked at, but nothing is alike
    assert torch.equal(pictures.split, expected)
    assert (pictures.duplicate_of == -1).all()


def test_a_group_is_never_divided_and_shares_stay_near():
    data = load(frame(300, patient=[f"p{k // 6}" for k in range(300)]), group="patient")
    assert all(len(found) == 1 for found in sides(data, "patient").values())
    for code, total in ((2, 100), (1, 90)):
        share = torch.bincount(data.y[data.split == code], minlength=3) / total
        assert (share - 0.1).abs().max() <= 0.04  # six rows at a time, two of each class
    assert data.inputs.shape == (2,)  # the group is not an input
    assert "in whole groups of patient" in data.describe()["notes"][-1]
    assert "--group patient" in as_words(data)


def test_groups_of_one_class_and_a_missing_value():
    patients = [None if k < 10 else f"{k % 3}-{k // 30}" for k in range(300)]
    data = load(frame(300, patient=patients), group="patient")
    assert all(len(found) == 1 for value, found in sides(data, "patient").items() if value is not None)
    assert set(data.y[data.split == 2].tolist()) == {0, 1, 2}
    assert any("10 rows have no value of patient" in note for note in data.notes)


def test_given_splits_are_left_and_what_straddles_is_told():
    given = ["train"] * 200 + ["test"] * 100
    data = load(frame(300, patient=[k // 8 for k in range(300)], split=given), group="patient")
    assert data.carved == ("val",)
    assert (data.split[200:] == 2).all()
    assert all(0 not in found or 1 not in found for found in sides(data, "patient").values())
    straddling = load(frame(300, patient=[k % 100 for k in range(300)], split=given), group="patient")
    assert "100 of 100 values of patient have rows in more than one of the given splits" in straddling.notes[0]


def test_one_group_cannot_be_divided():
    with pytest.raises(UserError, match=r"without dividing a value of 'site'.*holdout=0"):
        load(frame(30, site=["x"] * 30), group="site")
    assert not load(frame(30, site=["x"] * 30), group="site", holdout=0).carved
    with pytest.raises(UserError, match="no group column 'sit'; did you mean 'site'"):
        load(frame(30, site=["x"] * 30), group="sit")
    with pytest.raises(UserError, match=r"data.group=site: planted has the splits it is built with"):
        load("planted:rows=100", group="site")
    with pytest.raises(UserError, match=r"\(X, y\) has no column 'site'"):
        load((noise(30), [0, 1] * 15), group="site")


def test_whole_units_come_as_near_as_they_can():
    """Units of 4, 3 and 2 rows of one class and single rows of the other: 3 of 9 is nearest to a third."""
    label, unit = [0] * 9 + [1] * 9, [0] * 4 + [1] * 3 + [2] * 2 + list(range(10, 19))
    taken = Counter((label[p], unit[p] if label[p] == 0 else -1) for p in whole_units(label, unit, 1 / 3))
    assert taken == {(0, 1): 3, (1, -1): 3}
    assert whole_units([0] * 6, [0] * 6, 0.5) == []  # all of it, or nothing


@given(st.lists(st.sampled_from([0, 1, 3]), max_size=40), st.floats(0.01, 0.9))
def test_units_of_one_row_are_taken_alike_with_and_without_lists(label, share):
    expected = whole_units(label, list(range(len(label))), share)
    assert single_rows(torch.tensor(label, dtype=torch.long), share).tolist() == expected


def test_twins_stay_on_one_side_and_are_told():
    x = noise(200)
    copies = np.clip(x[:40].astype(int) * 0.95 + 5, 0, 255).astype(np.uint8)
    y = [k % 2 for k in range(200)] + [k % 2 for k in range(40)]
    data = load((np.concatenate([x, copies]), y))
    assert data.duplicate_of[200:].tolist() == list(range(40))
    assert torch.equal(data.split[200:], data.split[:40])
    assert len(set(data.split[:40].tolist())) == 3
    assert "80 near-duplicate images were kept on one side with their twins" in data.notes
    apart = load((np.concatenate([x, copies]), y), duplicates=False)
    assert not torch.equal(apart.split[200:], apart.split[:40])
    assert not apart.notes


def test_twins_across_given_splits_are_counted_and_left():
    class Rows(torch.utils.data.Dataset):
        def __init__(self, x):
            self.x = x

        def __len__(self):
            return len(self.x)

        def __getitem__(self, k):
            return self.x[k], k % 2

    x = noise(60)
    data = load({"train": Rows(x), "test": Rows(np.concatenate([noise(30, seed=1), x[:5]]))})
    assert len(data.rows("test")) == 35
    assert "5 sets of near-duplicate images have rows in more than one of the given splits" in data.notes


def test_the_last_rows_by_time():
    start = datetime.date(2024, 1, 1)
    when = [start + datetime.timedelta(days=(7 * k) % 300) for k in range(300)]
    data = load(frame(300, when=when), order="when")
    day = torch.tensor([(w - start).days for w in when])
    assert sorted(day[data.split == 2].tolist()) == list(range(270, 300))
    assert sorted(day[data.split == 1].tolist()) == list(range(243, 270))
    assert data.describe()["notes"][-1] == "the val split was taken from the training rows, the last rows by when"
    assert "data.order=when" in as_words(data)
    assert data.inputs.shape == (2,)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_order_that_is_that_of_the_classes_goes_class_by_class(classes):
    size = 300 // classes
    rows = frame(300).with_columns(label=pl.Series([k // size for k in range(300)]), when=pl.Series(range(300)))
    data = load(rows, order="when")
    last = range(size - size // 10, size)
    assert (data.split == 2).nonzero().flatten().tolist() == [c * size + k for c in range(classes) for k in last]
    assert "the last rows of every class by when" in data.describe()["notes"][-1]


def test_by_time_a_patient_goes_with_the_last_visit():
    patients = [f"p{k % 50}" if k < 295 else "late" for k in range(300)]
    patients[0] = "late"
    data = load(frame(300, when=list(range(300)), patient=patients), order="when", group="patient")
    assert all(len(found) == 1 for found in sides(data, "patient").values())
    assert int(data.split[0]) == int(data.split[299]) == 2


def test_by_file_name_whole_blocks_of_neighbours_are_held_out(tmp_path):
    pictures = noise(400)
    for k, picture in enumerate(pictures):
        place = tmp_path / ("late" if k % 7 == 0 or k >= 360 else "early") / f"{k:04d}.png"  # the last tenth is of one class
        place.parent.mkdir(exist_ok=True)
        Image.fromarray(picture.transpose(1, 2, 0)).save(place)
    data = load(str(tmp_path), order="name")
    number = torch.tensor([int(Path(p).stem) for p in data.paths])
    side = data.split[number.argsort()]
    changes = int((side[1:] != side[:-1]).sum())
    assert changes <= 2 * 2 * 40 * 0.1 + 4  # each held-out block of ten has two ends; a random draw has some 140 of them
    for code in (1, 2):
        held = data.y[data.split == code]
        assert len(held) == pytest.approx(40, abs=10)
        assert 0 < int((held == data.classes.index("late")).sum()) < len(held) / 2  # both classes, the frequent one more often
        assert int(number[data.split == code].max() - number[data.split == code].min()) > 100  # from several places
    assert "in blocks of neighbouring files" in data.describe()["notes"][-1]


def test_in_blocks_twins_stay_together():
    rank, unit = torch.arange(100), torch.arange(100)
    unit[90] = unit[3]
    found = blocks(rank, unit, torch.ones(100, dtype=torch.bool))
    assert int(found[90]) == int(found[3]) == 0
    assert torch.unique(found[:90]).tolist() == list(range(9))


def test_an_order_has_nothing_to_do_where_splits_are_given():
    given = ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    data = load(frame(30, when=list(range(30)), split=given), order="when")
    assert data.split.tolist() == [0] * 20 + [1] * 5 + [2] * 5
    assert data.notes == ("data.order=when changed nothing: no split was carved",)


def test_unknown_order():
    with pytest.raises(UserError, match=r"data\.order=tme: no such column; did you mean 'time'"):
        load(frame(30, time=range(30)), order="tme")
