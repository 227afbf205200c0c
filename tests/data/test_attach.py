import polars as pl
import pytest

import unskew
from unskew.core.errors import UserError
from unskew.records import Table


@pytest.fixture
def scores(tmp_path):
    data = unskew.load("planted:rows=200,bias=0.5")
    frame = pl.DataFrame({"index": [0, 3, 5], "slice": ["a", "b", "a"], "planted": ["x", "y", "x"]})
    Table(frame, {"fingerprint": data.fingerprint}).save(tmp_path / "scores.parquet")
    return tmp_path / "scores.parquet"


def test_a_column_of_a_table_becomes_the_bias(scores):
    data = unskew.load("planted:rows=200,bias=0.5", bias=[f"{scores}:slice"])
    assert data.bias_names == ("slice",)
    assert data.bias_values == (("a", "b"),)
    assert data.bias[[0, 3, 5, 1], 0].tolist() == [0, 1, 0, -1]
    assert data.aligned_by_design is None
    assert data.fingerprint == unskew.load("planted:rows=200,bias=0.5").fingerprint


def test_beside_a_column_of_the_source(scores):
    data = unskew.load("planted:rows=200,bias=0.5", bias=["planted", f"{scores}:slice"])
    assert data.bias_names == ("planted", "slice")
    assert data.bias[:, 0].tolist() == unskew.load("planted:rows=200,bias=0.5").bias[:, 0].tolist()


def test_the_name_is_made_absolute(scores, monkeypatch):
    monkeypatch.chdir(scores.parent)
    data = unskew.load("planted:rows=200,bias=0.5", bias=["scores.parquet:slice"])
    assert data.reading.bias == (f"{scores}:slice",)


def test_what_is_wrong_is_said(scores):
    with pytest.raises(UserError, match="another source"):
        unskew.load("planted:rows=200,bias=0.6", bias=[f"{scores}:slice"])
    with pytest.raises(UserError, match=r"no bias column 'slic'.*slice"):
        unskew.load("planted:rows=200,bias=0.5", bias=[f"{scores}:slic"])
    with pytest.raises(UserError, match="two columns are called 'planted'"):
        unskew.load("planted:rows=200,bias=0.5", bias=["planted", f"{scores}:planted"])
    with pytest.raises(UserError, match="no table"):
        unskew.load("planted:rows=200,bias=0.5", bias=[f"{scores.parent}/no.parquet:slice"])
