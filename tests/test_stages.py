"""Methods of several stages: each stage's result is there, is used, and is not made twice; the game against REPAIR's own step."""

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.methods.repair import rate_of_weights
from unskew.methods.repair_game import RepairGame, RepairGameConfig
from unskew.records import Batch, Facts, Run, Table
from unskew.repairs.repair import Game
from unskew.training.fit import TrainConfig
from unskew.verbs.evaluate import trained_method

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


def stamps(folder):
    return {p.name: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def test_pgd_trains_on_rows_drawn_by_the_scores_of_a_biased_model(tmp_path):
    settings = SHORT | {"epochs": "2", "k": "20", "lambda_": "0.5"}
    run = package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=settings)
    biased = Run(tmp_path / "run-biased")
    assert biased.config["config"]["method_name"] == "gce"
    assert biased.outcome["steps"] == 2 * 21  # 1,296 rows in batches of 64
    table = Table.read(tmp_path / "run-scores.parquet")
    assert table.made_by["run"] == str(biased.path)
    assert table.made_by["settings"]["lambda_"] == 0.5
    data = package.load(SOURCE)
    weight = table.column("weight")
    conflicting = (data.y != data.bias[:, 0])[table.index]
    assert weight[conflicting].mean() > weight[~conflicting].mean()
    assert run.config["config"]["train"]["weights"] == "sampler"
    assert run.config["config"]["data"]["augment"] == "pgd"
    before = stamps(tmp_path)
    again = package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=settings)
    assert again.path == run.path
    assert stamps(tmp_path) == before
    shared = package.train(
        SOURCE, "pgd", model="convnet1", out=tmp_path / "warm",
        settings=settings | {"biased": str(biased.path), "warm": "true"},
    )  # fmt: skip
    assert not (tmp_path / "warm-biased").exists()
    assert shared.config["config"]["train"]["start"] == str(biased.path)


def test_denoise_comes_before_any_method(tmp_path):
    noisy = f"{SOURCE},noise=0.1"
    settings = SHORT | {"denoise.train.epochs": "3", "denoise.factor": "1.1", "upweight": "3", "first": "2"}
    run = package.train(noisy, "denoise+jtt", model="convnet1", out=tmp_path / "run", settings=settings)
    table = Table.read(tmp_path / "run-clean.parquet")
    dropped = int((table.column("weight") == 0).sum())
    assert dropped > 0
    assert table.made_by["settings"]["factor"] == 1.1
    whole = len(package.load(noisy).rows("train"))
    assert run.config["data"]["rows"]["train"] == whole - dropped
    assert run.config["data"]["rows"]["dropped"] == dropped
    assert Run(tmp_path / "run-first").config["data"]["rows"]["dropped"] == dropped
    package.evaluate(run)  # reads its data again, by itself
    with pytest.raises(UserError, match="what can stand before a method is one of denoise or balance"):
        package.train(SOURCE, "repair+erm", out=tmp_path / "x")
    with pytest.raises(UserError, match="another source"):
        package.train("toy", "erm", out=tmp_path / "x", settings={"data.keep": str(tmp_path / "run-clean.parquet")})


def test_balance_before_a_method(tmp_path):
    source = "tiles:base=digits,rows=400,ratio=4"
    settings = {"train.steps": "2", "train.batch": "32", "balance.alpha": "1.5"}
    run = package.train(source, "balance+erm", out=tmp_path / "run", settings=settings)
    data = package.load(source)
    table = Table.read(tmp_path / "run-balanced.parquet")
    kept = table.index[table.column("weight") > 0]
    assert len(kept) < len(data.rows("train"))
    women, men = (data.y[kept][data.bias[kept, 0] == value].sum(0) for value in (0, 1))
    assert bool((torch.maximum(women, men) <= 1.5 * torch.minimum(women, men)).all())
    assert run.config["facts"]["rows"] == len(kept)


def test_what_is_wrong_behind_a_prefix_is_told_before_the_repair(tmp_path):
    for method, settings, said in (
        ("balance+nosuch", {}, "no method 'nosuch'"),
        ("balance+erm", {"nosuch": 1}, "unknown setting 'method.nosuch'"),
        ("balance+denoise+erm", {}, "what can stand before a method is one of"),
    ):
        with pytest.raises(UserError, match=said):
            package.train(SOURCE, method, out=tmp_path / "x", settings=settings)
    assert not list(tmp_path.iterdir())


def test_aflite_keeps_some_rows_and_trains_on_those(tmp_path):
    settings = SHORT | {"phi": "color:kind=max", "models": "8", "size": "0.5", "tau": "0.6"}
    run = package.train(SOURCE, "aflite", model="convnet1", out=tmp_path / "run", settings=settings)
    kept = int((Table.read(tmp_path / "run-kept.parquet").column("weight") > 0).sum())
    assert 0.5 * 1296 <= kept < 1296
    assert run.finished
    network = package.train(
        SOURCE, "aflite", model="convnet1", out=tmp_path / "net", settings=SHORT | {"models": "8", "epochs": "1", "tau": "0.3"}
    )
    assert Run(tmp_path / "net-features").finished
    assert network.finished


@pytest.mark.parametrize("phi", ["", "color:kind=max"])
def test_repair_prefers_rows_without_the_shortcut(tmp_path, phi):
    settings = {"train.epochs": "6", "train.batch": "64", "strategy": "rank", "optim.lr": "0.01"} | ({"phi": phi} if phi else {})
    package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "run", settings=settings)
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
    with pytest.raises(UserError, match="epochs are of the game with phi"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "x", settings=SHORT | {"epochs": "2"})
    short = SHORT | {"strategy": "weights", "lr_weights": "5"}
    package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "net", settings=short)
    before = (tmp_path / "net-weights.parquet").read_bytes()
    with pytest.raises(UserError, match="holds another run"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "net", settings=short | {"strategy": "class_rank"})
    assert (tmp_path / "net-weights.parquet").read_bytes() == before
    with pytest.raises(UserError, match="is not a run of repair_game on this source"):
        package.train(SOURCE, "repair", model="convnet1", out=tmp_path / "x", settings=SHORT | {"game": str(tmp_path / "run")})
    with pytest.raises(UserError, match="leave out phi and lr_weights"):
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


def test_a_step_of_the_game_is_repairs_own_with_a_linear_reader():
    g = torch.Generator().manual_seed(0)
    z, y = torch.randn(30, 4, generator=g, dtype=torch.float64), torch.randint(0, 3, (30,), generator=g)
    reference = Game(z, y, lr_estimator=0.1, momentum=0.0, lr_weights=3.0, seed=0)
    facts = Facts(class_counts=y.bincount(minlength=3), rows=30, size=30, shape=(4,))
    game = RepairGame(RepairGameConfig(lr_weights=3.0), facts, lambda: torch.nn.Linear(4, 3)).double()
    with torch.no_grad():
        game.model.weight.copy_(reference.theta[:4].T)
        game.model.bias.copy_(reference.theta[4])
    optimizer = torch.optim.SGD(game.parameters(), lr=0.1)
    batch = Batch(index=torch.arange(30), x=z, y=y)

    def update(batch):
        terms = game.loss(batch)
        optimizer.zero_grad()
        sum(terms.values()).backward()
        optimizer.step()
        return terms

    for _ in range(3):
        game.step(batch, update)
        reference.step(reference.z1, y, reference.place)
        torch.testing.assert_close(game.omega.sigmoid(), reference.weights())
        torch.testing.assert_close(game.model.weight.T, reference.theta[:4])
    assert bool((game.omega != 0).all())


def test_the_games_weights_are_kept_with_the_run(tmp_path):
    run = package.train(SOURCE, "repair_game", model="convnet1", out=tmp_path / "run", settings=SHORT)
    method = trained_method(run)
    drawn = method.seen.nonzero().flatten()
    assert len(drawn) == 12 * 64
    assert bool((method.omega[drawn] != 0).all())
    assert bool((method.omega[~method.seen] == 0).all())
