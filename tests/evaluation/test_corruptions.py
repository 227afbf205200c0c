"""A run judged on corrupted images: names are checked, figures are means, and what was asked for is kept."""

import json

import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.evaluation.corruptions import Options
from unskew.stats.corrupt import CORRUPTIONS


def test_names_are_checked():
    assert Options(corruptions=("all",)).corruptions == tuple(CORRUPTIONS)
    assert Options(corruptions=("fog", "snow")).corruptions == ("fog", "snow")
    assert Options().corruptions == ()
    with pytest.raises(UserError, match="no corruption 'frog'; did you mean 'fog'"):
        Options(corruptions=("frog",))


def test_evaluate_counts_and_keeps_them(tmp_path):
    run = package.train("colored-mnist:base=digits,ratio=0.5", out=tmp_path / "run", settings={"train.epochs": 4})
    kinds = ("gaussian_noise", "contrast")
    found = package.evaluate(run, corruptions=kinds).metrics
    corrupted = found["corruptions"]
    assert list(corrupted["kinds"]) == list(kinds)
    for kind in corrupted["kinds"].values():
        assert kind["mean"] == pytest.approx(sum(kind["severity"]) / 5)
    assert corrupted["mean"] == pytest.approx(sum(k["mean"] for k in corrupted["kinds"].values()) / 2)
    assert corrupted["kinds"]["contrast"]["severity"][4] < found["plain"]
    assert package.evaluate(run).metrics["corruptions"] == corrupted  # asked for once, kept
    page = package.report([run], tmp_path / "page.html")
    assert "On corrupted images" in page.read_text()
    assert json.loads((tmp_path / "run" / "metrics-test.json").read_text())["corruptions"] == corrupted
    with pytest.raises(UserError, match="--corruptions needs images"):
        package.evaluate(package.train("toy", out=tmp_path / "toy", settings={"train.steps": 2}), corruptions=("fog",))
