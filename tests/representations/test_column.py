"""Columns of a table as codes or as numbers."""

import polars as pl
import pytest

from tests.support.pictures import features
from unskew.core.errors import UserError
from unskew.data import load
from unskew.features import standard

pytestmark = pytest.mark.usefixtures("own_cache")


def test_columns_are_codes_or_numbers(folder):
    frame = pl.DataFrame(
        {"path": [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)], "label": ["cat"] * 12 + ["dog"] * 12}
    )
    frame = frame.with_columns(pl.Series("site", ["x", "y", None] * 8), pl.Series("age", [float(k) / 3 for k in range(24)]))
    frame.write_csv(folder / "t.csv")
    data = load(folder / "t.csv", bias="site")
    assert features(data, "column:name=site")[:3].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert features(data, "column:name=age").shape[1] == 24
    with pytest.raises(UserError, match="no column 'nosuch'"):
        features(data, "column:name=nosuch")
    assert {"column:name=site", "column:name=age", "file"} <= {s.name for s in standard(data)[0]}
