"""The verb report: a page for vectors too, and the whole story from the audit to the gain."""

import html
import json

import pytest

import unskew as package
from unskew.core.errors import UserError


def test_a_run_on_vectors_has_a_page_too(tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings={"train.epochs": 2})
    text = package.report(run, tmp_path / "p.html").read_text()
    assert "No gallery: inputs are not images" in text


def test_the_page_tells_the_whole_story(tmp_path):
    source, short = "colored-mnist:base=digits,ratio=0.9", {"train.steps": 5, "train.batch": 64}
    seen = package.audit(source, representations=("color:kind=max",), out=tmp_path / "audit")
    kept = package.repair(source, "inverse_frequency", out=tmp_path / "weights.parquet")
    runs = [package.train(source, "erm", out=tmp_path / name, seed=k, settings=short) for k, name in enumerate("ab")]
    page = package.report(runs, tmp_path / "page.html", audit=tmp_path / "audit", repairs=[tmp_path / "weights.parquet"])
    text = html.unescape(page.read_text(encoding="utf-8"))
    places = [text.index(f"<h2>{part}</h2>") for part in ("The shortcut", "The repair", "The gain", "Accuracy")]
    assert places == sorted(places)
    assert seen.verdict in text
    assert kept.verdict in text
    content = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert content["audit"]["representations"][0]["name"] == "color:kind=max"
    with pytest.raises(UserError, match=r"audit.json does not exist; name an audit's folder"):
        package.report(runs, tmp_path / "page.html", audit=tmp_path / "no")
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(UserError, match="was not written by this version of unskew"):
        package.report(runs, tmp_path / "page.html", repairs=[tmp_path / "bad.parquet"])
