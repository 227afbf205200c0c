"""REPAIR as a method: rows without the shortcut are preferred, and the length of its game."""

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.methods.repair import rate_of_weights
from unskew.records import Run, Table
from unskew.training.fit import TrainConfig

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


@pytest.mark.parametrize("phi", ["", "color:kind=max"])
def test_repair_prefers_rows_without_the_shortcut(tmp_path, phi):
    settings = {"train.epochs": "6", "train.batch": "64", "strategy": "rank", "optim.lr": "0.01"}
    settings |= {"phi": phi} if phi else {"reader": "network"}
    package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "run", settings=settings, force=True)
    table = Table.read(tmp_path / "run-weights.parquet")
    data = package.load(SOURCE)
    rows = table.index[data.split[table.index] == 0]
    score = torch.zeros(len(data)).double()
    score[table.index] = table.column("score").double()
    conflicting = data.y[rows] != data.bias[rows, 0]
    assert score[rows][conflicting].mean() > score[rows][~conflicting].mean()


def test_repair_with_all_rows_draws_them_by_weight(tmp_path):
    settings = SHORT | {"strategy": "weights", "phi": "color:kind=max", "epochs": "2"}
    run = package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "run", settings=settings)
    table = Table.read(tmp_path / "run-weights.parquet")
    assert bool((table.column("weight") > 0).all())
    assert run.config["config"]["train"]["weights"] == "sampler"
    settings = SHORT | {"epochs": "2", "reader": "network"}
    with pytest.raises(UserError, match="phi and epochs are for reader=linear"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "x", settings=settings)
    short = SHORT | {"strategy": "weights", "lr_weights": "5", "reader": "network"}
    package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "net", settings=short)
    before = (tmp_path / "net-weights.parquet").read_bytes()
    with pytest.raises(UserError, match="holds another run"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "net", settings=short | {"strategy": "class_rank"})
    assert (tmp_path / "net-weights.parquet").read_bytes() == before
    with pytest.raises(UserError, match="is not a run of repair_game on this source"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "x", settings=SHORT | {"game": str(tmp_path / "run")})
    with pytest.raises(UserError, match="phi and epochs are for reader=linear"):
        package.train(SOURCE, "repair", out=tmp_path / "x", settings={"game": str(tmp_path / "net-game"), "phi": "color"})
    with pytest.raises(UserError, match=r"leave out train\.weights"):
        package.train(SOURCE, "repair", out=tmp_path / "x", settings={"strategy": "weights", "train.weights": "loss"})
    game = Table.read(tmp_path / "net-weights.parquet")
    assert torch.equal(game.column("weight"), game.column("score"))
    assert Run(tmp_path / "net-game").config["config"]["method"]["lr_weights"] == 5


def test_a_short_game_moves_its_weights_as_far_as_a_long_one():
    # A row is drawn `epochs` times and moves by rate / batch each time: 200 epochs at 10 with 128 rows is 15.6 in all.
    for epochs, batch in ((200, 128), (20, 256), (3, 64)):
        rate = rate_of_weights(TrainConfig(epochs=epochs, batch=batch), 5_000)
        assert epochs * rate / batch == pytest.approx(15.625)
    steps = rate_of_weights(TrainConfig(steps=500, batch=100), 5_000)  # 10 epochs
    assert steps == pytest.approx(rate_of_weights(TrainConfig(epochs=10, batch=100), 5_000))
