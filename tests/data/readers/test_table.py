"""Tables of image files: every ending, every name of the path column."""

import polars as pl
import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.write import write


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("path_name", ["file_name", "img_filename", "filename", "path"])
def test_tables(folder, ending, path_name):
    frame = pl.DataFrame(
        {
            path_name: [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)],
            "label": ["cat"] * 12 + ["dog"] * 12,
            "place": ["home", "street", None] * 8,
            "split": ["train"] * 8 + ["val"] * 2 + ["test"] * 2 + ["train"] * 8 + ["valid"] * 2 + ["test"] * 2,
        }
    )
    path = folder / f"table.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    data = load(path, bias="place")
    assert data.bias_values == (("home", "street"),)
    assert data.bias[:3, 0].tolist() == [0, 1, -1]
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [16, 4, 4]
    assert len(data.aligned()[0][0]) == 2


def test_a_missing_val_or_test_is_carved_from_train(folder):
    rows = {"path": [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)], "label": ["cat"] * 12 + ["dog"] * 12}
    for given, carved, counts in (
        ((["train"] * 10 + ["test"] * 2) * 2, ("val",), [18, 2, 4]),
        ((["train"] * 10 + ["val"] * 2) * 2, ("test",), [18, 4, 2]),
        ((["train"] * 10 + ["test_new"] * 2) * 2, ("val",), [18, 2, 0]),
        (["test"] * 24, (), [0, 0, 24]),
    ):
        pl.DataFrame(rows | {"split": given}).write_csv(folder / "table.csv")
        data = load(folder / "table.csv")
        assert data.carved == carved
        assert [int((data.split == k).sum()) for k in range(3)] == counts
        assert load(folder / "table.csv", holdout=0).carved == ()
    pl.DataFrame(rows).write_csv(folder / "table.csv")
    assert not load(folder / "table.csv", holdout=0).split.any()


def test_a_set_that_unskew_wrote_keeps_its_splits(tmp_path):
    made = load("biased-mnist:base=digits,ratio=0.9")  # has no val
    for how in ("npz", "images"):
        write(made, tmp_path / how, how)
        back = load(tmp_path / how)
        assert back.carved == ()
        assert torch.equal(back.split.bincount(), made.split.bincount())


def test_order_by_file_name_holds_out_whole_blocks(folder):
    data = load(folder, order="name", holdout=0.25)
    assert {name: len(data.rows(name)) for name in ("train", "val", "test")} == {"train": 15, "val": 4, "test": 5}
    assert "blocks of neighbouring files" in data.describe()["notes"][-1]


def test_class_folders_have_no_group_column(folder):
    with pytest.raises(UserError, match=r"no group column 'patient': class folders have no columns; add a metadata\.csv"):
        load(folder, group="patient")
