"""Records show themselves: a short repr, and HTML for a notebook in which every name is escaped."""

import polars as pl
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.pages.charts import svg
from unskew.records import Dependency, Table

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
    data = package.load(pl.DataFrame({"a": [float(k) for k in range(40)], "label": [HOSTILE, "b"] * 20}))
    assert HOSTILE not in data._repr_html_()
    assert "&lt;script&gt;" in data._repr_html_()


def marks(chart, name):
    """The values of a column of a chart's data, in order; the chart must be one that can be drawn."""
    assert svg(chart).startswith("<svg")
    spec = chart.to_dict()
    data = spec.get("data") or spec["layer"][0]["data"]
    return [row.get(name) for row in data["values"]]


def test_every_result_can_be_plotted(run, tmp_path):
    judged = package.evaluate(run)
    values = marks(judged.plot(), "value")
    assert judged.metrics["plain"] in values
    assert len(values) > len(judged.groups.cells)
    assert "train ce" in marks(run.plot(), "series")
    made = package.repair(
        "planted:rows=200,bias=0.5",
        "repair",
        out=tmp_path / "w.parquet",
        force=True,
        settings={"phi": "input", "epochs": 2},
    )
    before, after = marks(made.plot(), "value")
    assert (before, after) == (made.measured[0].before.bias, max(made.measured[0].after.bias, 0.0))
    seen = package.audit("planted:rows=200,bias=0.5", representations=["input"], out=tmp_path / "audit")
    assert marks(seen.plot(), "kind") == [f.verdict for f in seen.findings]
    found = Dependency(
        source="toy", phi="input", model="mlp", method="erm", split="test", seed=0, beta=0.1, rates=(1.0, 0.5), random=(0.9, 0.8),
        repaired=(0.9, 0.7), temporal=None, command="",
    )  # fmt: skip
    assert marks(found.plot(), "y") == [0.9, 0.7, 0.9, 0.8]


def test_a_bench_plots_ours_beside_the_published_mean(tmp_path):
    report = package.bench("rebias-toy", scale="smoke", out=tmp_path / "bench", workers=1)
    chart = report.plot("plain")
    assert marks(chart, "kind") == ["ours", "published"] * 2
    assert marks(chart, "value")[1] == 0.55


def test_tables_are_frames(run, tmp_path):
    package.evaluate(run)
    frame = run.predictions
    assert set(frame["split"]) == {"test", "trained"}
    assert frame.filter(split="test").height == len(package.evaluate(run).predictions)
    audit = package.audit("planted:rows=200,bias=0.5", representations=["input"], out=tmp_path / "audit")
    assert isinstance(audit.scores, pl.DataFrame)
    assert audit.scores.equals(pl.read_parquet(tmp_path / "audit" / "scores.parquet"))
    assert audit.scores.sort("score input").height == audit.rows
    table = audit.table
    assert table["index"].to_list() == table.index.tolist() == table.to_pandas()["index"].to_list()
    assert table.to_polars().equals(audit.scores)
    assert "<table" in table._repr_html_()
    hostile = Table(pl.DataFrame({"index": [0], "name": [HOSTILE]}))
    assert HOSTILE not in hostile._repr_html_()
    other = package.train("toy:rows=300", model="mlp", out=tmp_path / "run", settings={"train.steps": 1})
    with pytest.raises(UserError, match="has no predictions yet; make them with: unskew evaluate"):
        _ = other.predictions
