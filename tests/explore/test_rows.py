"""Columns as codes: kinds, counts and orders against plain Python."""

import numpy as np
import polars as pl
import pytest

from unskew.core.errors import UserError
from unskew.explore.rows import BINS, NONE, VIEWS, Rows, column


def test_kinds_of_columns():
    rng = np.random.default_rng(0)
    kinds = {
        "flag": pl.Series([True, False] * 300), "few": pl.Series([1, 2, 3] * 200), "many": pl.Series(range(600)),
        "number": pl.Series(rng.normal(size=600)), "word": pl.Series(["x", None] * 300), "text": pl.Series([f"t{k}" for k in range(600)]),
    }  # fmt: skip
    found = {name: column(series.alias(name)) for name, series in kinds.items()}
    assert {name: one.kind for name, one in found.items()} == {
        "flag": "values", "few": "values", "many": "number", "number": "number", "word": "values", "text": "text",
    }  # fmt: skip
    assert column(pl.Series("names", [f"t{k}" for k in range(50)])).kind == "text"  # each row has its own
    assert found["few"].values == ("1", "2", "3")
    assert found["word"].values == ("x", NONE)
    assert column(pl.Series("nothing", [None, None])) is None
    assert column(pl.Series("nan", [float("nan")] * 3)).kind == "text"


def test_numbers_fall_into_bins_as_numpy_counts_them():
    rng = np.random.default_rng(1)
    x = np.r_[rng.normal(size=1000), np.nan, np.inf].astype(np.float32)
    rows = Rows.of(pl.DataFrame({"x": x}), len(x))
    counts = rows.counts(rows.view({}))["x"]
    expected, _ = np.histogram(x[:1000], BINS)
    assert counts[BINS] == 2  # rows without a number
    assert np.abs(np.cumsum(counts[:BINS]) - np.cumsum(expected)).max() <= 1  # a value on an edge may fall on either side


def test_orders_and_views():
    rows = Rows.of(pl.DataFrame({"x": [0.3, None, -1.0, 2.0, 0.1] * 3, "a": ["u", "v", "u", None, "v"] * 3}), 15)
    x = [0.3, None, -1.0, 2.0, 0.1] * 3
    up = rows.view({}, "x").ids.tolist()
    assert [x[k] for k in up[:12]] == sorted(v for v in x if v is not None)
    assert {x[k] for k in up[12:]} == {None}
    down = rows.view({"a": {"in": ["u", NONE]}}, "x", True)
    assert [x[k] for k in down.ids.tolist()] == [2.0] * 3 + [pytest.approx(0.3)] * 3 + [-1.0] * 3
    assert rows.recall(down.key).tolist() == down.ids.tolist()
    for k in range(VIEWS):
        rows.view({"x": {"between": [0, k]}})
    with pytest.raises(UserError, match="no longer"):
        rows.recall(down.key)


def test_replaced_columns_forget_views_and_totals():
    rows = Rows.of(pl.DataFrame({"a": ["u", "v"]}), 2)
    first = rows.view({})
    assert rows.counts(first)["a"] == [1, 1]
    rows.put([pl.Series("t", ["yes", "yes"])], "tag")
    assert rows.counts(rows.view({}))["t"] == [2]
    with pytest.raises(UserError):
        rows.recall(first.key)
    rows.put([], "tag", ["t"])
    assert "t" not in rows.columns
