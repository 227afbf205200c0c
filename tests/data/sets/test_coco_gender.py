"""COCO: genders by captions, boxes around people, and cut files."""

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
    assert data.columns.row(0, named=True) == {"x0": 2, "y0": 1, "x1": 14, "y1": 9}  # around both people
    hidden = load(source, hide="black")
    assert hidden.inputs.rows(torch.tensor([0]))[0][0, :, 5, 8].tolist() == [0, 0, 0]
    path = home / "annotations" / "captions_train2014.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(UserError, match=r"captions_train2014.json is not a complete JSON file .* download it again"):
        load(source)
    path.write_text("[]")
    with pytest.raises(UserError, match="no list 'images'; is it a COCO annotation file"):
        load(source)
