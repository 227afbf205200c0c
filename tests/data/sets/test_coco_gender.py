"""COCO: genders by captions, boxes around people, and cut files."""

import json

import pytest
import torch

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_coco_genders_by_captions(real_set):
    source, home = real_set("coco-gender")
    data = load(source)
    assert data.classes == ("dog", "horse")
    assert data.multi_label
    assert [rows(data, s) for s in ("train", "val", "test")] == [4, 2, 2]
    assert data.bias_values == (("man", "woman"),)
    assert data.bias[data.rows("train"), 0].tolist() == [0, 1, 0, 1]
    assert data.y[data.rows("train")].tolist() == [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert "4 images left out: captions mention both genders" in data.notes
    assert "4 images left out: captions mention none" in data.notes
    corners = [[2, 3, 7, 3, 7, 9, 2, 9], [4, 1, 14, 1, 14, 5, 4, 5]]  # without polygons, the boxes
    assert data.columns.row(0, named=True) == {"x0": 2, "y0": 1, "x1": 14, "y1": 9, "outline": corners}  # around both people
    hidden = load(source, hide="black")
    assert hidden.inputs.rows(torch.tensor([0]))[0][0, :, 5, 8].tolist() == [0, 0, 0]
    path = home / "annotations" / "captions_train2014.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(UserError, match=r"captions_train2014.json is not a complete JSON file .* download it again"):
        load(source)
    path.write_text("[]")
    with pytest.raises(UserError, match="no list 'images'; is it a COCO annotation file"):
        load(source)


def test_outlines_and_faces_hide_what_the_annotations_say(real_set):
    source, home = real_set("coco-gender")
    for part in ("train2014", "val2014"):
        path = home / "annotations" / f"instances_{part}.json"
        table = json.loads(path.read_text())
        for note in table["annotations"]:
            note["segmentation"] = [[0, 0, 8, 0, 0, 8]] if note["category_id"] == 1 else []
        path.write_text(json.dumps(table))
        points = [6, 5, 2, 4, 5, 2, *[0] * 9]  # nose and one eye, two pixels apart
        face = {"annotations": [{"image_id": k, "keypoints": points} for k in range(8)]}
        (home / "annotations" / f"person_keypoints_{part}.json").write_text(json.dumps(face))
    outlined = load(source, hide="black", mask="outline", size=16).inputs.rows(torch.tensor([0]))[0][0]
    plain = load(source, size=16).inputs.rows(torch.tensor([0]))[0][0]
    assert outlined[:, 2, 2].tolist() == [0, 0, 0]  # inside the triangle
    torch.testing.assert_close(outlined[:, 12, 12], plain[:, 12, 12])  # far from it
    data = load(source)
    assert data.columns.row(0, named=True)["face_x0"] == [5 - 0.75 * 2]
    assert data.columns.row(0, named=True)["face_y1"] == [5 + 0.75 * 2]


def test_lists_of_the_authors_replace_the_splits(real_set, tmp_path):
    source, _ = real_set("coco-gender")
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "train.txt").write_text("COCO_train2014_000000000000.jpg\nCOCO_train2014_000000000001.jpg\n")
    (folder / "val.txt").write_text("COCO_val2014_000000000004.jpg\n")
    (folder / "test.txt").write_text("COCO_val2014_000000000005.jpg\nCOCO_val2014_000000000001.jpg\n")
    data = load(f"{source},lists={folder}")
    assert [rows(data, s) for s in ("train", "val", "test")] == [2, 1, 2]
    assert any(note.startswith("2 training images; published: 22,826 (original)") for note in data.notes)
    (folder / "val.txt").write_text("99\n")
    with pytest.raises(UserError, match="1 of 1 images are not in the annotations; the first is 99"):
        load(f"{source},lists={folder}")
    (folder / "test.txt").unlink()
    (folder / "val.txt").write_text("COCO_val2014_000000000004.jpg\n")
    with pytest.raises(UserError, match=r"lacks test.txt"):
        load(f"{source},lists={folder}")
