"""independence as a method: what it leaves beside the run, and that it helps where a shortcut was planted."""

import unskew as package

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.96"
SHORT = {"train.steps": 150}


def test_it_lifts_the_conflicting_rows(tmp_path, own_cache):
    erm = package.evaluate(package.train(SOURCE, out=tmp_path / "erm", settings=SHORT))
    run = package.train(SOURCE, "independence", out=tmp_path / "run", settings=SHORT)
    assert (tmp_path / "run-weights.parquet").is_file()
    assert run.config["labels"]["training"] == ["y"]
    found = package.evaluate(run)
    assert found.groups.conflicting.value > erm.groups.conflicting.value + 0.1
    assert found.groups.aligned.value > 0.8
