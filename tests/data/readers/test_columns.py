"""Columns as codes: several labels of a row, from columns and from a list."""

import polars as pl
import pytest

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.readers.columns import codes


def test_multi_label_from_columns_and_from_a_list(folder):
    paths = [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)]
    pl.DataFrame({"path": paths, "furry": [1, 0] * 12, "red": [0, 1] * 12}).write_csv(folder / "t.csv")
    data = load(folder / "t.csv", label="furry,red")
    assert data.multi_label
    assert data.classes == ("furry", "red")
    assert data.y[:2].tolist() == [[1, 0], [0, 1]]
    pl.DataFrame({"path": paths, "label": [["a", "b"], []] * 12}).write_parquet(folder / "t.parquet")
    data = load(folder / "t.parquet")
    assert data.classes == ("a", "b")
    assert data.y[:2].tolist() == [[1, 1], [0, 0]]


def test_the_fraction_that_is_shown_is_one():
    with pytest.raises(UserError, match=r"fractions such as 2\.5"):
        codes(pl.Series("a", [1.0, 2.0, 2.5]), "t")
