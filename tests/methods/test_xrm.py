"""xrm: both trainings, the environments between them by hand, and what it refuses."""

import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.records import Run, Table
from unskew.training.finished import trained_method


def test_environments_are_the_rows_that_either_network_gets_wrong(tmp_path):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
    short = {"train.steps": 4, "train.batch": 256, "steps": "8"}
    run = package.train(source, "xrm", model="mlp", out=tmp_path / "run", settings=short)
    assert run.finished
    assert run.config["labels"]["training"] == ["y"]
    table, data = Table.read(tmp_path / "run-weights.parquet"), package.load(source)
    said = trained_method(Run(tmp_path / "run-twins")).get_buffer("said")
    totals = {}
    for row, weight, environment in zip(
        table.index.tolist(), table.column("weight").tolist(), table.column("environment").tolist(), strict=True
    ):
        y = int(data.y[row])
        assert environment == int(int(said[row, 0]) != y or int(said[row, 1]) != y)
        totals[y, environment] = totals.get((y, environment), 0) + weight
    assert len(totals) > 3
    assert max(totals.values()) == pytest.approx(min(totals.values()))  # every (class, environment) is drawn equally often


def test_refusals(tmp_path):
    with pytest.raises(UserError, match="xrm needs one class per row"):
        package.train("tiles:base=digits,rows=200", "xrm", out=tmp_path / "x")
    with pytest.raises(UserError, match="steps and least must be at least 1"):
        package.train("digits", "xrm", out=tmp_path / "x", settings={"method.steps": 0})
