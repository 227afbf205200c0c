"""REPAIR's game against a network: a step against the repair's own with a linear reader, and its weights in the run."""

import torch

import unskew as package
from unskew.methods.repair_game import RepairGame, RepairGameConfig
from unskew.records import Batch, Facts
from unskew.repairs.repair import Game
from unskew.verbs.evaluate import trained_method

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


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
        reference.step(reference.read(torch.arange(len(y))), y, reference.place)
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
