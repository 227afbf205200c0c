"""advised: what a trial supports, and plain training where it supports nothing."""

import json

import unskew as package


def test_advised_is_plain_training_where_nothing_was_planted(tmp_path, own_cache):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.33333"
    run = package.train(source, "advised", out=tmp_path / "run", settings={"train.steps": 5})
    told = json.loads((tmp_path / "run-trial.json").read_text())
    assert told["method"] == run.config["config"]["method_name"] == "erm"
    assert told["supports"] is False


def test_advised_takes_the_planted_colour_out(tmp_path, own_cache):
    source, short = "colored-mnist:base=digits,digits=3,5,8,ratio=0.96", {"train.steps": 150}
    erm = package.evaluate(package.train(source, out=tmp_path / "erm", settings=short))
    run = package.train(source, "advised", out=tmp_path / "run", settings=short)
    told = json.loads((tmp_path / "run-trial.json").read_text())
    assert (told["method"], told["settings"], told["removed"]) == ("neutralise", {"what": "color"}, "color")
    assert run.config["labels"]["training"] == ["y"]
    found = package.evaluate(run)
    assert found.groups.conflicting.value > erm.groups.conflicting.value + 0.1
    assert found.groups.aligned.value > 0.8
