"""cnc: its stages, that its opinions are those of the first model, that a finished run does not need the file, and refusals."""

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.records import Run, Table
from unskew.training.finished import trained_method
from unskew.training.predict import predict

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
SHORT = {"train.steps": 4, "train.batch": 128}


def test_opinions_are_the_first_models_and_no_bias_label_is_seen(tmp_path):
    run = package.train(SOURCE, "cnc", model="mlp", out=tmp_path / "run", settings={**SHORT, "method.steps": "6"})
    assert run.finished
    assert run.config["labels"]["training"] == ["y"]
    assert run.config["config"]["method_name"] == "bcon"
    place = tmp_path / "run-opinion.parquet"
    table, data = Table.read(place), package.load(SOURCE)
    index, logits = predict(trained_method(Run(tmp_path / "run-first")), data, table.index)
    assert torch.equal(logits.argmax(1), table.column("opinion"))
    cells = 3 * data.y[index] + logits.argmax(1)
    totals = torch.zeros(9).double().index_add_(0, cells, table.column("weight"))
    there = totals[totals > 0]
    torch.testing.assert_close(there, there.mean().expand_as(there))
    place.unlink()
    assert package.evaluate(run).groups.aligned.value >= 0
    with pytest.raises(UserError, match="is not a table of opinions"):
        package.train(SOURCE, "bcon", model="mlp", out=tmp_path / "x", settings={**SHORT, "opinion": str(place)})


def test_refusals(tmp_path):
    with pytest.raises(UserError, match="cnc needs one class per row"):
        package.train("tiles:base=digits,rows=200", "cnc", out=tmp_path / "x")
    with pytest.raises(UserError, match="weight lie in"):
        package.train(SOURCE, "cnc", out=tmp_path / "x", settings={"weight": "1"})
