"""Leaks of names, folders and order: planted ones are reported, class folders are only noted, and chance is not mistaken for a leak."""

import pytest
import torch
from sklearn.metrics import roc_auc_score

from unskew.core.errors import UserError
from unskew.data.sources import load
from unskew.data.write import write
from unskew.parts.leaks import area, leaks, neighbours

CLASSES = ("cat", "dog")


def test_area_is_scikit_learns():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (90,), generator=g)
    score = torch.rand(90, 3, generator=g).round(decimals=1)  # with ties
    expected = sum(float((y == c).double().mean()) * roc_auc_score((y == c).numpy(), score[:, c].numpy()) for c in range(3))
    assert area(score, y) == pytest.approx(expected)


def test_neighbours_by_hand():
    assert neighbours(torch.tensor([0, 1, 1, 0, 1]), 2, reach=2)[2].tolist() == [0.5, 0.5]
    assert neighbours(torch.tensor([0, 1, 1, 0, 1]), 2, reach=2)[0].tolist() == [0, 1]


def test_class_folders_and_class_named_files_are_one_note():
    y = torch.arange(200) % 2
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0)).tolist()
    paths = [f"/data/train/{CLASSES[c]}/{CLASSES[c]}_{order[k]:04d}.jpg" for k, c in enumerate(y.tolist())]
    found = leaks(paths, y, CLASSES)
    assert found.findings == ()
    assert found.notes == ("class folders and class-named files: where the label comes from, not a finding",)


def test_numbers_that_go_on_from_class_to_class_are_an_order():
    y = (torch.arange(200) >= 100).long()
    paths = [f"/data/{CLASSES[c]}/{k:04d}.jpg" for k, c in enumerate(y.tolist())]
    (leak,) = leaks(paths, y, CLASSES).findings
    assert leak.kind == "order"
    assert leak.auc > 0.99
    assert leak.command == "data.order=name"
    again = [f"/data/{CLASSES[c]}/{k % 100:04d}.jpg" for k, c in enumerate(y.tolist())]  # each folder counts from 0
    assert leaks(again, y, CLASSES).findings == ()


def test_prefixes_and_folders_beyond_the_class():
    y = torch.arange(300) % 2
    lot = torch.randperm(300, generator=torch.Generator().manual_seed(1)).tolist()
    paths = [
        f"/d/{CLASSES[c]}/site{(c + (k % 10 == 0)) % 2}/{('IMG', 'DSC')[c]}_{lot[k]:04d}.jpg" for k, c in enumerate(y.tolist())
    ]
    found = {leak.kind: leak for leak in leaks(paths, y, CLASSES).findings}
    assert found["name"].auc == 1
    assert "IMG_#" in found["name"].sentence
    # A fifth of the cats is at the dogs' site, where guesses are ties: 0.8 + 0.2 / 2.
    assert found["folder"].auc == pytest.approx(0.9, abs=0.02)
    assert found["folder"].command.startswith("--group folder")


def test_flattery_is_what_series_give_a_random_split():
    # Series of ten nearly equal pictures of one class, drawn independently of it: only a random split can read the class.
    g = torch.Generator().manual_seed(0)
    series = torch.arange(400) // 10
    y = torch.randint(0, 2, (40,), generator=g)[series]
    features = torch.randn(40, 30, generator=g)[series] + 0.05 * torch.randn(400, 30, generator=g)
    (leak,) = leaks((), y, CLASSES, features=features).findings
    assert leak.random > 0.8
    assert leak.apart < 0.65
    assert leak.flatters == pytest.approx(leak.random - leak.apart)


@pytest.mark.parametrize("order", ["class", "random"])
def test_defects_written_in_order(tmp_path, order):
    data = load(f"defects:rows=300,test=60,size=32,order={order}")
    written = load(str(write(data, tmp_path / "d", "images")), duplicates=False)
    found = leaks(written.paths, written.y, written.classes)
    assert [leak.kind for leak in found.findings] == (["order"] if order == "class" else [])


def test_chance_is_not_told():
    told = 0
    for seed in range(30):
        g = torch.Generator().manual_seed(seed)
        y = torch.randint(0, 2, (150,), generator=g)
        paths = [f"/d/{'abcd'[int(k)]}/{n:03d}.jpg" for n, k in enumerate(torch.randint(0, 4, (150,), generator=g))]
        told += bool(leaks(paths, y, CLASSES, seed=seed).findings)
    assert told <= 2


def test_several_labels_per_row():
    with pytest.raises(UserError, match="one class per row"):
        leaks((), torch.zeros(4, 2), CLASSES)
