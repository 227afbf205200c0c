"""Near-duplicates of photographs in files, beside cleanvision; the same whether rows are in memory or streamed."""

import numpy as np
import pytest
import torch

from tests.support.photographs import noise, write_photographs
from unskew.data import load
from unskew.data.duplicates import disagrees, of_data, of_files, of_pixels, told

pytestmark = pytest.mark.usefixtures("own_cache")


def sets_of(names, duplicate_of):
    found = {}
    for name, first in zip(names, duplicate_of.tolist(), strict=True):
        if first >= 0:
            found.setdefault(first, set()).add(name)
    return list(found.values())


def name_of(path):
    return "/".join(str(path).replace("\\", "/").split("/")[-2:])


def test_photographs_saved_again_are_twins_and_other_crops_are_not(tmp_path):
    twins = write_photographs(tmp_path / "photos")
    data = load(tmp_path / "photos", holdout=0.2)
    assert sorted(map(sorted, sets_of(map(name_of, data.paths), data.duplicate_of))) == sorted(map(sorted, twins))
    for group in twins:
        assert len({int(data.split[k]) for k, p in enumerate(data.paths) if name_of(p) in group}) == 1
    assert "32 near-duplicate images were kept on one side with their twins" in data.notes
    streamed = load(tmp_path / "photos", holdout=0.2, mode="stream", size=64)
    assert torch.equal(streamed.split, data.split)  # splits depend neither on the mode nor on the size


def test_cleanvisions_sets_are_within_ours(tmp_path):
    cleanvision = pytest.importorskip("cleanvision", reason="cleanvision, the reference, is not installed")
    root = tmp_path / "photos"
    write_photographs(root, crops=15)
    lab = cleanvision.Imagelab(data_path=str(root))
    lab.find_issues({"near_duplicates": {}, "exact_duplicates": {}}, n_jobs=1, verbose=False)
    theirs = [{name_of(p) for p in group} for group in lab.info["near_duplicates"]["sets"]]
    paths = sorted(str(p) for p in root.rglob("*.*"))
    ours = sets_of(map(name_of, paths), of_files(paths))
    assert len(theirs) >= 8
    for group in theirs:
        assert any(group <= mine for mine in ours), group


def test_unreadable_files_have_no_twins(tmp_path):
    write_photographs(tmp_path / "photos", crops=3)
    paths = sorted(str(p) for p in (tmp_path / "photos").rglob("*.*"))
    (tmp_path / "a.png").write_bytes(b"no picture")
    found = of_files([str(tmp_path / "a.png"), str(tmp_path / "a.png"), *paths])
    assert found[:2].tolist() == [-1, -1]
    assert torch.equal(found[2:], torch.where(of_files(paths) >= 0, of_files(paths) + 2, -1))


def test_the_answer_for_many_files_is_kept(tmp_path, monkeypatch):
    write_photographs(tmp_path / "photos", crops=3)
    paths = sorted(str(p) for p in (tmp_path / "photos").rglob("*.*"))
    monkeypatch.setattr("unskew.data.duplicates._WORTH_KEEPING", 1)
    first = of_files(paths, [b"key"])
    monkeypatch.setattr("unskew.data.duplicates.thumbnail", None)  # would fail if called
    assert torch.equal(of_files(paths, [b"key"]), first)


@pytest.mark.parametrize("kind", ["float", "grey", "large"])
def test_pixels_of_any_kind(kind):
    x = np.kron(noise(50, 16), np.ones((4, 4), np.uint8))
    x = np.concatenate([x, x[:4]])
    x = {"float": (x / 255.0).astype(np.float32), "grey": x[:, :1], "large": np.kron(x, np.ones((2, 2), np.uint8))}[kind]
    assert of_pixels(torch.from_numpy(x))[-4:].tolist() == [0, 1, 2, 3]
    readable = torch.ones(54, dtype=torch.bool)
    readable[50] = False
    assert of_pixels(torch.from_numpy(x), readable)[[0, 50, 1, 51]].tolist() == [-1, -1, 1, 1]


def test_counts_by_hand():
    twins = torch.tensor([0, 0, -1, 3, 3, 3, 6, 6])
    y = torch.tensor([0, 1, 0, 1, 1, 1, 0, 0])
    split = torch.tensor([0, 0, 0, 0, 0, 2, 0, 1])
    found = told(twins, y, split)
    assert (found.sets, found.rows, found.disagreeing, found.crossing) == (3, 7, 1, 2)
    assert disagrees(twins, torch.stack([y, 1 - y], 1)).tolist() == [True, True, *[False] * 6]


def test_vectors_and_too_many_rows_are_not_looked_at(monkeypatch):
    assert of_data(load("planted:rows=100")) is None
    monkeypatch.setattr("unskew.data.splitting.MOST_ROWS", 20)
    data = load((noise(30), [0, 1] * 15))
    assert data.duplicate_of is None
    assert "near-duplicates were not looked for: more than 200,000 rows" in data.notes
