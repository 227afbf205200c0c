"""Tables of image files: every ending, every name of the path column."""

import polars as pl
import pytest

from unskew.data import load


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
