"""The last layer: against scikit-learn, by groups, by difficulty and by opinion; nothing to step, nothing to resume."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import unskew as package
from unskew.core.errors import UserError
from unskew.methods.last_layer import balanced_groups, difficulty, fit_weighted
from unskew.training.finished import open_run


@pytest.fixture(scope="module")
def biased(tmp_path_factory):
    """Two numbers: one shows a shortcut that holds in 95 % of the rows, the other the class, more faintly."""
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.integers(0, 2, n)
    split = np.array(["train"] * 2000 + ["val"] * 200 + ["test"] * 800)
    follows = rng.random(n) < np.where(split == "test", 0.5, 0.95)
    bias = np.where(follows, y, 1 - y)
    x = np.stack([3.0 * bias, 1.5 * y], 1) + rng.standard_normal((n, 2))
    path = tmp_path_factory.mktemp("biased") / "d.npz"
    np.savez(path, x=x.astype(np.float32), y=y, split=split, place=bias)
    return str(path)


def fitted(source, weights, out, **settings):
    given = {"weights": weights, **settings}
    return package.train(
        source, "last_layer", out=out, settings=given | ({"data.bias": "place"} if weights in ("groups", "auto") else {})
    )


def test_plain_is_penalised_softmax_regression(biased, tmp_path):
    run = fitted(biased, "plain", tmp_path / "r", decays="0.05")
    method, data = open_run(run)
    rows = data.rows("train")
    x = data.inputs.x[rows].double()
    x = ((x - x.mean(0)) / x.std(0)).numpy()
    reference = LogisticRegression(C=2 / (0.05 * len(rows)), tol=1e-10, max_iter=1000).fit(x, data.y[rows].numpy())
    with torch.no_grad():
        logits = method.predict(data.inputs.x[rows].float())
    np.testing.assert_allclose((logits[:, 1] - logits[:, 0]).numpy(), reference.decision_function(x), atol=2e-2)
    assert run.outcome["steps"] == 0
    assert run.config["labels"]["training"] == ["y"]


def test_known_groups_lift_the_conflicting_rows_and_are_declared(biased, tmp_path):
    plain = package.evaluate(fitted(biased, "plain", tmp_path / "p"), str(biased))
    grouped = fitted(biased, "auto", tmp_path / "g")
    assert grouped.config["config"]["method"]["weights"] == "groups"
    assert grouped.config["labels"]["training"] == ["bias", "y"]
    assert package.evaluate(grouped).groups.worst_group.value > 0.6
    assert plain.groups.class_balanced.value < package.evaluate(grouped).groups.class_balanced.value


def test_without_a_bias_column_auto_takes_the_opinion(biased, tmp_path):
    run = package.train(biased, "last_layer", out=tmp_path / "r")
    assert run.config["config"]["method"]["weights"] == "opinion"
    assert run.config["labels"]["training"] == ["y"]
    again = package.train(biased, "last_layer", out=tmp_path / "again")
    one, two = (open_run(r)[0].state_dict() for r in (run, again))
    assert all(torch.equal(one[k], two[k]) for k in one)


def test_weights_by_hand():
    data = package.load("toy:rows=60")
    rows = torch.arange(len(data))
    w = balanced_groups(data.y[rows], data, rows)
    totals = torch.zeros(data.num_groups, dtype=torch.float64).index_add_(0, data.group, w)
    present = totals[totals > 0]
    torch.testing.assert_close(present, present.mean().expand_as(present))
    g = torch.Generator().manual_seed(0)
    y = torch.arange(200) % 2
    x = torch.randn(200, 3, generator=g) + 2 * y[:, None]
    torch.testing.assert_close(difficulty(x, y, 2, 0.0, 0), torch.ones(200, dtype=torch.float64))
    hard = difficulty(x, y, 2, 4.0, 0)
    assert float(hard.max() / hard.min()) <= float(torch.tensor(4.0).exp()) + 1e-6


def test_the_penalty_is_chosen_on_rows_that_were_held_out():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (200,), generator=g)
    x = torch.cat([torch.ones(200, 1), torch.randn(200, 60, generator=g)], 1)  # nothing to learn: the largest penalty wins
    assert fit_weighted(x, y[:, None], torch.ones(200, 1), (1e-3, 1e-1, 10.0), 2, 0)[1] == 10.0


def test_several_labels(tmp_path):
    source = "tiles:base=digits,rows=600"
    run = package.train(
        source, "last_layer", model="frozen", out=tmp_path / "r",
        settings={"model.backbone": "small-resnet", "weights": "plain", "model.size": 32},
    )  # fmt: skip
    assert package.evaluate(run).label_figures.f1_macro > 0


def test_bad_settings(tmp_path):
    with pytest.raises(UserError, match="decays must be above 0"):
        package.train("toy", "last_layer", out=tmp_path / "x", settings={"decays": "0"})
