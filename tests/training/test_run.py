"""One training: given again, with another seed, beside another one, and with weights of its rows."""

import json

import polars as pl
import pytest
import torch

import unskew as package
from tests.support.runs import same, weights
from unskew.core import workplace
from unskew.core.errors import UserError
from unskew.records import Table

SMALL = {"train.epochs": 2, "train.batch": 64}


def test_given_again_it_does_nothing_and_another_run_is_refused(tmp_path):
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    before = (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    assert (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(UserError, match=r"holds another run \(config.train.batch is 64 there and 32 here\)"):
        package.train("toy", out=tmp_path / "r", settings=SMALL | {"train.batch": 32})
    record = json.loads((tmp_path / "r" / "config.json").read_text())
    del record["config"]["data"]["keep"], record["config"]["method"]["class_weights"]  # made before these settings existed
    (tmp_path / "r" / "config.json").write_text(json.dumps(record))
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    assert (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns == before


def test_the_seed_decides_everything(tmp_path):
    package.train("toy", out=tmp_path / "a", settings=SMALL, seed=1)
    torch.manual_seed(99)  # what the caller did with the global generator does not matter
    package.train("toy", out=tmp_path / "b", settings=SMALL, seed=1)
    package.train("toy", out=tmp_path / "c", settings=SMALL, seed=2)
    same(tmp_path / "a", tmp_path / "b")
    assert not torch.equal(weights(tmp_path / "a")["model.head.weight"], weights(tmp_path / "c")["model.head.weight"])


@pytest.mark.parametrize("method", ["reweight", "lff"])
def test_a_method_never_hears_of_rows_that_the_weights_drop(tmp_path, method):
    source = "colored-mnist:base=digits,ratio=0.9"
    data = package.load(source)
    train = data.rows("train")
    kept = train[data.bias[train, 0] < 5]
    table = Table(pl.DataFrame({"index": kept.numpy(), "weight": [1.0] * len(kept)}), {"fingerprint": data.fingerprint})
    run = package.train(source, method, model="convnet1", out=tmp_path / "run", weights=table, settings={"train.epochs": 1})
    facts = run.config["facts"]
    assert facts["rows"] == len(kept)
    assert facts["class_counts"] == data.y[kept].bincount(minlength=10).tolist()
    if method == "reweight":
        assert facts["group_counts"] == data.group[kept].bincount(minlength=100).tolist()


def test_weights_act_as_loss_weights_or_as_chances_and_zero_drops_a_row(tmp_path):
    data = package.load("toy")
    train = data.rows("train")
    keep = (data.y[train] < 2).double()  # class 2 gets no weight: it must never be predicted
    table = Table(pl.DataFrame({"index": train.numpy(), "weight": keep.numpy()}), {"fingerprint": data.fingerprint})
    for how in ("loss", "sampler"):
        run = package.train("toy", out=tmp_path / how, weights=table, settings={"train.epochs": 10, "train.weights": how})
        logits = package.evaluate(run).predictions.column("logits")
        assert (logits.argmax(1) < 2).all()
    other = Table(table.frame, {"fingerprint": "0" * 32})
    with pytest.raises(UserError, match="made for another source"):
        package.train("toy", out=tmp_path / "x", weights=other, settings=SMALL)


def test_a_folder_takes_one_training_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(workplace, "PATIENCE", 0.2)
    short = {"train.steps": 3, "train.batch": 64}
    with workplace.alone(tmp_path / "run", "training"), pytest.raises(UserError, match="another training is running in"):
        package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short)
    assert package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short).finished
