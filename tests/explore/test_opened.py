"""What can be opened: audits, repairs, runs, folders of these, sources; their tables become columns of the rows."""

import json

import numpy as np
import polars as pl
import pytest

import unskew
from unskew.core.errors import UserError
from unskew.explore.opened import open_place
from unskew.records import Table

SOURCE = "colored-mnist:base=digits,digits=3,5,ratio=0.9"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """An audit, a repair and a run of the same rows in one folder."""
    home = tmp_path_factory.mktemp("results")
    unskew.audit(SOURCE, representations=["color:kind=max"], out=home / "audit", trial=False, slices=0)
    unskew.repair(SOURCE, "inverse_frequency", out=home / "weights.parquet", force=True)
    run = unskew.train(SOURCE, "erm", out=home / "run", settings={"train.steps": 3, "train.batch": 16})
    unskew.evaluate(run)
    return home


def test_a_folder_of_results_shows_them_all(results):
    found = open_place(str(results))
    assert found.results == ("audit audit", "run run", "repair weights.parquet")
    assert len(found.columns) == len(found.data)
    assert {"label", "split", "color", "score color:kind=max", "prediction", "correct", "confidence", "weights weight"} <= set(
        found.columns.columns
    )
    scores = Table.read(results / "audit" / "scores.parquet").frame
    shown = found.columns["score color:kind=max"].gather(scores["index"])
    assert shown.to_list() == scores["score color:kind=max"].to_list()
    predictions = Table.read(results / "run" / "predictions" / "test.parquet")
    said = predictions.column("logits").argmax(1)
    expected = [found.data.classes[c] for c in said.tolist()]
    assert found.columns["prediction"].gather(predictions.frame["index"]).to_list() == expected
    weights = Table.read(results / "weights.parquet").frame
    assert found.columns["weights weight"].gather(weights["index"]).to_list() == weights["weight"].to_list()


@pytest.mark.parametrize("name", ["audit", "run", "weights.parquet"])
def test_each_result_opens_on_its_own(results, name):
    found = open_place(str(results / name))
    assert found.title == name
    assert found.data.source == SOURCE
    assert len(found.results) == 1


def test_an_audit_of_a_table_remembers_how_it_was_read(tmp_path, own_cache):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"species": ["a", "b"] * 40, "place": rng.integers(0, 2, 80), "height": rng.normal(size=80)})
    rows.write_csv(tmp_path / "rows.csv")
    unskew.audit(str(tmp_path / "rows.csv"), bias=["place"], out=tmp_path / "audit", settings={"data.label": "species"})
    found = open_place(str(tmp_path / "audit"))
    assert found.data.classes == ("a", "b")
    assert found.data.bias_names == ("place",)
    assert found.columns["height"].to_list() == rows["height"].to_list()
    record = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert record["data"]["reading"] == {"label": ["species"], "bias": ["place"]}


def test_a_source_that_has_changed_is_told(tmp_path, own_cache):
    rows = pl.DataFrame({"label": ["a", "b"] * 40, "place": [0, 1, 1, 0] * 20})
    rows.write_csv(tmp_path / "rows.csv")
    unskew.audit(str(tmp_path / "rows.csv"), bias=["place"], out=tmp_path / "audit")
    rows.head(60).write_csv(tmp_path / "rows.csv")
    with pytest.raises(UserError, match="has changed since"):
        open_place(str(tmp_path / "audit"))
