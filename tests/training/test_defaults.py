"""What is trained when no network is named: by the shape of the inputs, with every setting still the user's."""

import dataclasses

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.data.dataset import Memory
from unskew.methods._contract import method_class
from unskew.training import defaults
from unskew.training.defaults import budget, choose


def choice(shape, method="erm", tune="auto", weighted=False, monkeypatch=None, missing=""):
    data = package.load("toy:rows=60")
    data = dataclasses.replace(data, inputs=Memory(torch.zeros(len(data), *shape)), fingerprint="")
    if monkeypatch is not None:
        monkeypatch.setattr(defaults, "_missing_weights", lambda: missing)
    cls = method_class(method)
    return choose(data, cls, cls.Config(), tune, 0, weighted)


def test_by_shape(monkeypatch):
    assert choice((5,)).model == "mlp"
    assert choice((3, 28, 28)).model == "small-resnet"
    assert choice((8, 3, 32, 32)).model == "resnet"
    assert choice((3, 96, 96), monkeypatch=monkeypatch).model == "frozen"
    assert choice((3, 96, 96), tune="all", monkeypatch=monkeypatch).model == "efficientnet-lite0"
    assert choice((3, 96, 96), method="gray", monkeypatch=monkeypatch).model == "small-resnet"
    assert choice((5,), method="last_layer").model == "linear"
    assert choice((3, 28, 28), method="last_layer", monkeypatch=monkeypatch).model == "frozen"


def test_without_pretrained_weights_a_network_is_trained_from_scratch(monkeypatch):
    said = []
    monkeypatch.setattr(defaults.progress, "say", said.append)
    assert choice((3, 96, 96), monkeypatch=monkeypatch, missing="no mirror answered").model == "small-resnet"
    assert "no mirror answered" in said[0]
    with pytest.raises(UserError, match="needs a pretrained network"):
        choice((3, 96, 96), method="last_layer", monkeypatch=monkeypatch, missing="no mirror answered")


def test_validation_rows_select_plain_training_only():
    assert choice((5,)).settings["select.rule"] == "val-accuracy"
    assert choice((5,), weighted=True).settings["select.rule"] == "last"
    assert choice((5,), method="lff").settings["select.rule"] == "last"


def test_a_small_set_gets_enough_steps_and_a_large_one_not_too_many():
    assert budget(100, 64) == defaults.LEAST
    assert budget(10**7, 64) == defaults.MOST


def test_what_the_user_gives_wins(tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings={"train.epochs": 1, "optim.lr": 0.07})
    cfg = run.config["config"]
    assert (cfg["train"]["epochs"], cfg["train"]["steps"], cfg["optim"]["lr"]) == (1.0, None, 0.07)
    assert cfg["optim"]["name"] == "adamw"  # the rest is the choice's
    assert any(note.startswith("network: mlp, chosen for vectors") for note in run.config["data"]["notes"])
    named = package.train("toy", model="mlp", out=tmp_path / "n", settings={"train.steps": 2}).config
    assert named["config"]["optim"]["name"] == "adam"  # a named network has the plain defaults
    with pytest.raises(UserError, match="needs a pretrained network"):
        package.train("toy", model="mlp", out=tmp_path / "x", settings={"train.tune": "head"})
