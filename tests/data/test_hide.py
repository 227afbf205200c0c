"""Boxes and masks blurred or blacked out: the pixels inside, and only those, in files and in arrays."""

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.hide import blurred


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(8):
        Image.fromarray(rng.integers(60, 255, (20, 24, 3), dtype=np.uint8)).save(tmp_path / f"{k}.png")
        mask = np.zeros((20, 24), dtype=np.uint8)
        mask[2:6, 3:9] = 255
        Image.fromarray(mask).save(tmp_path / f"m{k}.png")
    frame = pl.DataFrame(
        {
            "path": [f"{k}.png" for k in range(8)],
            "label": ["a", "b"] * 4,
            "split": ["train"] * 4 + ["val", "val", "test", "test"],
            "x0": [3.0, None] * 4, "y0": [2.0, None] * 4, "x1": [9.0, None] * 4, "y1": [6.0, None] * 4,
            "mask": [f"m{k}.png" if k else None for k in range(8)],
        }
    )  # fmt: skip
    frame.write_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


def test_boxes_of_files_are_black_and_nothing_else(table):
    plain, hidden = load(table), load(table, hide="black")
    assert hidden.notes[-1] == "boxes are blacked out; 4 rows have none and are unchanged"
    assert hidden.fingerprint != plain.fingerprint
    expected = plain.inputs.x.clone()
    expected[::2, :, 2:6, 3:9] = 0
    torch.testing.assert_close(hidden.inputs.x, expected)
    streamed = load(table, hide="black", mode="stream")
    torch.testing.assert_close(streamed.inputs.rows(torch.arange(8))[0], expected)


def test_masks_are_used_in_place_of_boxes(table):
    plain, hidden = load(table), load(table, hide="black", mask="mask")
    expected = plain.inputs.x.clone()
    expected[1:, :, 2:6, 3:9] = 0
    torch.testing.assert_close(hidden.inputs.x, expected)


def test_blur_is_a_gaussian_inside_and_nothing_outside(table):
    plain, hidden = load(table), load(table, hide="blur", blur=2.0)
    inside = torch.zeros(20, 24, dtype=torch.bool)
    inside[2:6, 3:9] = True
    torch.testing.assert_close(hidden.inputs.x[0][:, ~inside], plain.inputs.x[0][:, ~inside])
    reference = gaussian_filter(plain.inputs.x[0].double().numpy(), (0, 2, 2), mode="nearest")[:, inside.numpy()]
    assert np.abs(hidden.inputs.x[0][:, inside].numpy() - reference).mean() < 6  # pillow's is made of boxes
    assert np.abs(plain.inputs.x[0][:, inside].numpy() - reference).mean() > 30


def test_blur_of_arrays_equals_scipy():
    x = torch.rand(2, 3, 15, 18, dtype=torch.float64)
    np.testing.assert_allclose(blurred(x, 1.5), gaussian_filter(x.numpy(), (0, 0, 1.5, 1.5), mode="nearest", radius=4), atol=2e-2)


def test_boxes_of_arrays():
    plain, hidden = load("tiles:base=digits,rows=200"), load("tiles:base=digits,rows=200", hide="black")
    assert plain.fingerprint != hidden.fingerprint
    x0, y0 = plain.columns["x0"][7], plain.columns["y0"][7]
    expected = plain.inputs.x[7].clone()
    expected[:, y0 : y0 + 14, x0 : x0 + 14] = 0
    torch.testing.assert_close(hidden.inputs.x[7], expected)


def test_several_boxes_of_a_row(tmp_path):
    Image.new("RGB", (10, 10), (200, 200, 200)).save(tmp_path / "a.png")
    boxes = {"x0": [[0, 5]] * 6, "y0": [[0, 5]] * 6, "x1": [[2, 7]] * 6, "y1": [[2, 7]] * 6}
    pl.DataFrame({"path": ["a.png"] * 6, "label": ["a", "b"] * 3, **boxes}).write_ndjson(tmp_path / "t.jsonl")
    x = load(tmp_path / "t.jsonl", hide="black").inputs.x[0, 0]
    expected = torch.full((10, 10), 200, dtype=torch.uint8)
    expected[:2, :2] = expected[5:7, 5:7] = 0
    torch.testing.assert_close(x, expected)


def test_a_mask_of_another_size_counts_as_unreadable(table):
    Image.new("L", (5, 5)).save(table.parent / "m3.png")
    with pytest.raises(UserError, match=r"1 of 8 images cannot be decoded.*its mask is 5x5, but the image is 24x20"):
        load(table, hide="black", mask="mask")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"boxes": "x,y,w,h"}, "data.hide needs a column 'x'"),
        ({"boxes": "x0,y0"}, "four columns"),
        ({"boxes": "x1,y1,x0,y0"}, r"row 1 has the box \(9, 6, 3, 2\)"),
        ({"mask": "label"}, "does not exist"),
        ({"blur": 0}, "data.blur must be above 0"),
    ],
)
def test_bad_boxes_are_one_clear_line(table, settings, said):
    with pytest.raises(UserError, match=said):
        load(table, hide="black", **{k: tuple(v.split(",")) if k == "boxes" else v for k, v in settings.items()})
