"""Slices from the audit to the methods that use them, on rows whose shortcut is known."""

import json
import math

import numpy as np
import polars as pl
import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.pages.text import audit_table
from unskew.records import Audit, Table

pytestmark = pytest.mark.usefixtures("own_cache")


def write(path, n=800, agree=0.95, seed=0):
    """x = (weak signal, strong shortcut, noise); the shortcut agrees with the class in most rows.

    The signal alone is right in 84 % of the rows: 1.2 apart with a deviation of 0.6 is one deviation to either side.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    b = np.where(rng.random(n) < agree, y, 1 - y)
    x = np.stack([1.2 * y + 0.6 * rng.standard_normal(n), 6 * b + 0.5 * rng.standard_normal(n), rng.standard_normal(n)], 1)
    np.savez(path, x=x.astype("float32"), y=np.array(["a", "b"])[y], site=np.array(["p", "q"])[b])
    return path


def test_the_column_slice_serves_group_dro_and_last_layer(tmp_path):
    source = str(write(tmp_path / "d.npz"))
    found = package.audit(source, out=tmp_path / "audit", trial=False)
    scores = pl.read_parquet(tmp_path / "audit" / "scores.parquet")
    truth = package.load(source, bias="site")
    lacking = truth.bias[torch.tensor(scores["index"].to_list()), 0] != truth.y[torch.tensor(scores["index"].to_list())]
    inside = torch.tensor((scores["slice_kind"] == "conflicting").to_list())
    assert (inside == lacking).double().mean() > 0.94
    top = torch.tensor(scores["slice_score"].to_list()).argsort(descending=True)[:10]
    assert lacking[top].double().mean() >= 0.9
    # The slice is the class that a row seems to have: with two classes, the site it has.
    assert (np.array(scores["slice"]) == np.array(["a", "b"])[truth.bias[scores["index"].to_list(), 0]]).mean() > 0.94
    assert found.slices is not None
    assert sum(s.n for s in found.slices.slices) == found.slices.rows == len(scores)

    other = str(write(tmp_path / "o.npz", agree=0.5, seed=1))
    named = f"{tmp_path}/audit/scores.parquet:slice"
    accuracy = {}
    for name, method, bias in (("plain", "last_layer", []), ("slices", "last_layer", [named]), ("dro", "group_dro", [named])):
        settings = {"data.bias": ",".join(bias)} if bias else {}
        settings |= {"train.steps": 30} if method == "group_dro" else {}
        settings |= {"method.weights": "plain"} if name == "plain" else {}
        run = package.train(source, method, out=tmp_path / name, settings=settings)
        accuracy[name] = package.evaluate(run, package.load(other)).groups.plain.value
    assert accuracy["slices"] > accuracy["plain"] + 0.02
    assert package.evaluate(tmp_path / "dro").groups.bias_names == ("slice",)


def test_json_text_page_and_reading_back(tmp_path):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
    found = package.audit(source, representations=["color:kind=mean"], out=tmp_path / "o", trial=False, slices=400)
    assert found.slices is not None
    assert 380 <= found.slices.rows <= 420
    conflicting = found.slices.conflicting
    assert conflicting
    assert {s.explained_by for s in conflicting} == {"color:kind=mean"}
    assert all(s.pictures and s.low <= s.error <= s.high for s in found.slices.slices)
    told = json.loads((tmp_path / "o" / "audit.json").read_text())
    again = Audit.of_json(told, Table.read(tmp_path / "o" / "scores.parquet"), tmp_path / "o" / "audit.html")
    assert again.slices == found.slices
    page = (tmp_path / "o" / "audit.html").read_text()
    assert "<h2>Slices</h2>" in page
    assert conflicting[0].name in page
    assert conflicting[0].sentence in audit_table(found)
    # Rows outside the sample have no slice.
    table = pl.read_parquet(tmp_path / "o" / "scores.parquet")
    assert len(table) == found.rows
    assert table["slice"].null_count() == found.rows - found.slices.rows


def test_none_and_bad_numbers(tmp_path):
    found = package.audit("planted:rows=200,bias=0.5", representations=["input"], out=tmp_path / "o", slices=0, trial=False)
    assert found.slices is None
    assert "slice" not in found.scores.columns
    assert "slices" not in audit_table(found)
    with pytest.raises(UserError, match="slices=5: must be 0"):
        package.audit("planted:rows=200,bias=0.5", out=tmp_path / "p", slices=5)


def test_a_model_that_guesses_has_no_slices_and_doubts_no_label(tmp_path):
    rng = np.random.default_rng(0)
    chance = (rng.standard_normal((400, 60)).astype("float32"), rng.integers(0, 2, 400))
    found = package.audit(chance, out=tmp_path / "audit", trial=False).slices
    assert (found.slices, found.doubtful) == ([], 0)
    assert "no better than chance" in found.sentence


def test_why_there_are_none(tmp_path):
    np.savez(tmp_path / "few.npz", x=np.random.default_rng(0).random((40, 3)), y=np.array(["a"] * 33 + ["b"] * 7))
    found = package.audit(str(tmp_path / "few.npz"), out=tmp_path / "o", trial=False)
    assert found.slices is not None
    assert found.slices.reason == "class b has fewer than 10 rows"
    assert math.isnan(found.slices.exponent)
    assert "No slices: class b" in found.page.read_text()
