"""A trained run, asked what it relies on."""

import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.evaluation.reliance import Options
from unskew.pages.reliance import reliance_lines, used_points


def test_a_run_on_coloured_digits_uses_colour(tmp_path):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.99"
    run = package.train(source, out=tmp_path / "run", model="lenet5", settings={"train.steps": 80, "optim.lr": 0.003})
    found = package.evaluate(run, reliance=True, reliance_rows=60).metrics
    kinds = found["reliance"]["kinds"]
    assert set(kinds) == {"grey", "colours", "border", "centre", "detail", "arrangement"}
    assert found["reliance"]["rows"] == kinds["grey"]["used"]["n"]
    assert 55 <= found["reliance"]["rows"] <= 65  # each class in its share, rounded
    used = [r["used"]["value"] for r in kinds.values()]
    assert used == sorted(used, reverse=True)
    assert kinds["colours"]["used"]["low"] > 0.2
    assert package.evaluate(run).metrics["reliance"] == found["reliance"]  # asked for once, kept
    assert any("which colours there are" in line for line in reliance_lines(found))
    page = package.report([run], tmp_path / "page.html").read_text()
    assert "What it relies on" in page
    assert found["reliance"]["sentence"] in page
    audit = {"representations": [{"name": "color:kind=mean", "bias": 0.8}, {"name": "color:kind=max", "bias": 0.6}]}
    points = used_points([{"name": "r", "metrics": found}], audit)
    assert [(p["name"], p["readable"]) for p in points] == [("colour", 0.8)]


def test_options_and_data_are_checked(tmp_path):
    with pytest.raises(UserError, match="reliance_rows=5: must be at least 20"):
        Options(reliance=True, reliance_rows=5)
    run = package.train("toy", out=tmp_path / "toy", settings={"train.steps": 2})
    with pytest.raises(UserError, match="reliance needs images or clips"):
        package.evaluate(run, reliance=True)
