"""REPAIR against a dense autograd game; its weights cut the bias, and an interrupted game resumes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unskew as package
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.measure import representation_bias
from unskew.repairs import repair_weights, select
from unskew.repairs.repair import Game, LargeGame, flow_time, omega_at


def dense_game(z, y, theta, steps, batch, lr_estimator, momentum, lr_weights, seed):
    """The released code's step, written out with autograd over all rows."""
    classes = int(y.max()) + 1
    estimator = torch.nn.Linear(z.shape[1], classes).to(z.dtype)
    with torch.no_grad():
        estimator.weight.copy_(theta[:-1].T)
        estimator.bias.copy_(theta[-1])
    omega = torch.zeros(len(y), dtype=z.dtype, requires_grad=True)
    first = torch.optim.SGD(estimator.parameters(), lr=lr_estimator, momentum=momentum)
    second = torch.optim.SGD([omega], lr=lr_weights)
    onehot = F.one_hot(y, classes).T.to(z.dtype)
    done, epoch = 0, 0
    while True:
        order = torch.randperm(len(y), generator=stream(seed, "repair", epoch))
        epoch += 1
        for rows in torch.split(order, batch):
            w = omega.sigmoid()
            share = w / w.mean()
            prior = onehot @ w / w.sum()
            risk = (share[rows] * F.cross_entropy(estimator(z[rows]), y[rows], reduction="none")).mean()
            entropy = -(share[rows] * prior[y[rows]].log()).mean()
            first.zero_grad()
            second.zero_grad()
            risk.backward(retain_graph=True)
            (omega.grad,) = torch.autograd.grad(1 - risk / entropy, [omega])
            first.step()
            second.step()
            done += 1
            if done == steps:
                return omega.sigmoid().detach(), estimator


@pytest.mark.parametrize("skewed", [False, True])
def test_a_step_equals_the_dense_game(skewed):
    generator = torch.Generator().manual_seed(3)
    z = torch.rand(701, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 5, (701,), generator=generator)
    if skewed:
        y[:500] = 2  # one class takes several lines of the weight matrix
    game = Game(z, y, 0.1, 0.9, 30.0, seed=0)
    expected, estimator = dense_game(z, y, game.theta.clone(), 50, 64, 0.1, 0.9, 30.0, seed=0)
    done = 0
    for epoch in range(9):
        order = torch.randperm(len(y), generator=stream(0, "repair", epoch))
        for rows in torch.split(order, 64):
            if done < 50:
                game.step(game.read(rows), y[rows], game.place[rows])
                done += 1
    assert float((expected - 0.5).abs().max()) > 0.05  # the weights have moved
    torch.testing.assert_close(game.weights(), expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(game.theta[:-1].T, estimator.weight.detach(), rtol=0, atol=1e-8)


def test_the_form_for_large_sets_follows_the_dense_game():
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(0, 3, (900,), generator=generator)
    z = F.one_hot(torch.where(torch.rand(900, generator=generator) < 0.8, y, 0), 3).double()
    games = [form(z, y, 0.1, 0.9, 10.0, 0) for form in (Game, LargeGame)]
    for epoch in range(40):
        for game in games:
            game.epoch(64, stream(0, "repair", epoch))
    dense, large = (game.weights() for game in games)
    assert float((dense - 0.5).abs().max()) > 0.1  # the weights have moved
    assert float(torch.corrcoef(torch.stack([dense, large]))[0, 1]) > 0.9999
    assert float((dense - large).abs().max()) < 2e-3
    # What it carries along for the sums of the classes is what they are.
    summed = torch.zeros(3, dtype=torch.float64).index_add_(0, y, large)
    torch.testing.assert_close(games[1].by_class, summed, rtol=1e-4, atol=0)


def test_a_class_moves_as_the_flow_says():
    # Euler's steps of d omega = -c w (1 - w), ever smaller, against the shift of G.
    omega, c = torch.tensor([-3.0, -0.5, 0.0, 2.0], dtype=torch.float64), 1.7
    flowed = omega_at(flow_time(omega) - c)
    for _ in range(20_000):
        w = omega.sigmoid()
        omega = omega - c / 20_000 * w * (1 - w)
    torch.testing.assert_close(flowed, omega, rtol=0, atol=1e-5)
    for end in (-60.0, 60.0):
        torch.testing.assert_close(omega_at(flow_time(torch.tensor([end]).double())), torch.tensor([end]).double())


def test_a_large_game_resumes_to_the_bit(tmp_path):
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 2, generator=generator), torch.randint(0, 3, (300,), generator=generator)
    one, two, three = (LargeGame(z, y, 0.1, 0.9, 10.0, 0) for _ in range(3))
    for epoch in range(4):
        one.epoch(32, stream(0, "repair", epoch))
        if epoch < 2:
            two.epoch(32, stream(0, "repair", epoch))
    two.save(tmp_path / "state", 2)
    assert three.load(tmp_path / "state", 4) == 2
    for epoch in (2, 3):
        three.epoch(32, stream(0, "repair", epoch))
    assert torch.equal(three.weights(), one.weights())
    assert Game(z, y, 0.1, 0.9, 10.0, 0).load(tmp_path / "state", 4) == 0  # of the other form: from the start


def test_large_sets_are_played_in_that_form(monkeypatch):
    monkeypatch.setattr("unskew.repairs.repair.LARGE", 200)
    monkeypatch.setattr(Game, "step", None)
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 2, generator=generator), torch.randint(0, 3, (300,), generator=generator)
    w = repair_weights(z, y, epochs=2)
    assert w.dtype == z.dtype
    assert bool(((w > 0) & (w < 1)).all())


def test_weights_cut_the_bias_and_uniform_does_not():
    data = package.load("planted:rows=4000,bias=0.6,seed=1")
    z = F.one_hot(data.bias[:, 0]).float()
    w = repair_weights(z, data.y, epochs=150, lr_estimator=0.05, lr_weights=20.0)
    before = representation_bias(z, data.y, permutations=0).bias
    assert representation_bias(z, data.y, w, permutations=0).bias < before - 0.15
    for strategy in ("rank", "class_rank", "sample"):
        kept = select(w, data.y, strategy)
        assert representation_bias(z[kept], data.y[kept], permutations=0).bias < before - 0.1, strategy
    # A bias of two values and a threshold: only the rows that contradict it are left, and these it tells for certain. The card says so.
    kept = select(w, data.y, "threshold")
    assert representation_bias(z[kept], data.y[kept], permutations=0).bias > 0.9
    kept = select(w, data.y, "uniform")
    assert abs(representation_bias(z[kept], data.y[kept], permutations=0).bias - before) < 0.05


def test_interrupted_game_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr("unskew.repairs.repair.SAVE_SECONDS", 0.0)
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 2, generator=generator), torch.randint(0, 3, (300,), generator=generator)
    whole = repair_weights(z, y, epochs=6)
    epochs = iter(range(3))

    def stop(steps, note):
        if next(epochs, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repair_weights(z, y, epochs=6, state=tmp_path / "state", advance=stop)
    assert (tmp_path / "state").is_file()
    assert torch.equal(repair_weights(z, y, epochs=6, state=tmp_path / "state"), whole)


def test_an_unbiased_small_set_keeps_its_classes():
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 3, generator=generator), torch.arange(300) % 2
    from unskew.repairs.repair import Config, schedule_for

    epochs, rate = schedule_for(300, Config())
    w = repair_weights(z, y, epochs=epochs // 4, lr_weights=rate * 4)
    means = [float(w[y == c].mean()) for c in (0, 1)]
    assert abs(means[0] - means[1]) < 0.25


@pytest.mark.parametrize(
    "ask",
    [
        lambda: repair_weights(np.zeros((0, 3)), []),
        lambda: repair_weights(np.zeros((2, 3)), np.array(["a", "b"])),
    ],
)
def test_no_rows_and_words_as_labels_are_told(ask):
    with pytest.raises(UserError):
        ask()
