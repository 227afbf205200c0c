"""advised: plain training where a trial supports nothing else."""

import json

import unskew as package


def test_advised_is_plain_training_where_nothing_was_planted(tmp_path, own_cache):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.33333"
    run = package.train(source, "advised", out=tmp_path / "run", settings={"train.steps": 5})
    told = json.loads((tmp_path / "run-trial.json").read_text())
    assert told["method"] == run.config["config"]["method_name"] == "erm"
    assert told["supports"] is False
