"""Just train twice: both trainings, and what lies between them."""

import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.records import Run

SHORT = {"train.steps": 4, "train.batch": 256, "method.first": "1", "upweight": "5"}


def test_jtt_weights_the_errors_of_a_first_training(tmp_path):
    source = "colored-mnist:base=digits,ratio=0.95"
    run = package.train(source, "jtt", out=tmp_path / "run", settings=SHORT)
    assert run.finished
    assert (tmp_path / "run-first" / "done.json").is_file()
    assert '"errors"' in (tmp_path / "run" / "stage.json").read_text()
    assert Run(tmp_path / "run-first").outcome["steps"] == 6  # one epoch of its own, whatever train.steps says
    again = package.train(source, "jtt", out=tmp_path / "run", settings=SHORT)
    assert again.path == run.path
    with pytest.raises(UserError, match="no method 'jtd'; did you mean 'jtt'"):
        package.train(source, "jtd", out=tmp_path / "x")
