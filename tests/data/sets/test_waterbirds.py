"""Waterbirds: columns of metadata.csv, another set of the same layout, and what is wrong with it."""

import pytest

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_birds_places_and_splits(real_set):
    source, home = real_set("waterbirds")
    data = load(source)
    assert data.classes == ("landbird", "waterbird")
    assert data.bias_values == (("land", "water"),)
    assert data.y.tolist() == [k % 2 for k in range(24)]
    assert data.bias[:, 0].tolist() == [int(k % 3 == 0) for k in range(24)]
    assert [rows(data, s) for s in ("train", "val", "test")] == [12, 6, 6]
    path = home / "metadata.csv"
    whole = path.read_text()
    path.write_text(whole.replace(",place,", ",kind,"))
    other = load(f"{source},bias=kind")
    assert other.classes == ("0", "1")
    assert other.bias_names == ("kind",)
    with pytest.raises(UserError, match=r"metadata.csv: no column 'place'"):
        load(source)
    path.write_text(whole.replace("bird_3.jpg,1,0,", "bird_3.jpg,1,7,"))
    with pytest.raises(UserError, match=r"metadata.csv:5: split 7 must be 0"):
        load(source)
    path.write_text(whole.replace("bird_3.jpg,1,0,", "bird_3.jpg,heron,0,"))
    with pytest.raises(UserError, match="column 'y' must hold whole numbers"):
        load(source)
