"""Records show themselves: a short repr, and HTML for a notebook in which every name is escaped."""

import pytest

import unskew as package

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("run")
    return package.train("toy:rows=300", model="mlp", out=home / "run", settings={"train.steps": 4, "train.batch": 32})


def test_every_record_has_a_short_repr_and_html(run, tmp_path):
    source = "colored-mnist:base=digits,ratio=0.9"
    judged = package.evaluate(run)
    made = package.repair(source, "inverse_frequency", out=tmp_path / "w.parquet")
    seen = package.audit("planted:rows=200,bias=0.5", representations=["input"], out=tmp_path / "audit")
    for record in (package.load(source), judged, judged.groups, made, seen, run):
        assert len(repr(record)) < 400
        html = record._repr_html_()
        assert "<table>" in html
        assert "<script" not in html
    assert "data:image/" in package.load(source)._repr_html_()
    assert "1297 train" in repr(package.load(source))


def test_hostile_names_are_text():
    import polars as pl

    data = package.load(pl.DataFrame({"a": [float(k) for k in range(40)], "label": [HOSTILE, "b"] * 20}))
    assert HOSTILE not in data._repr_html_()
    assert "&lt;script&gt;" in data._repr_html_()
