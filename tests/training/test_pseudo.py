"""Groups without bias labels: they find planted groups, small ones are pooled, and runs say what missing labels cost."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

import unskew as package
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.training.pseudo import groups_for, k_means, pooled
from unskew.training.selection import score
from unskew.training.state import Known

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"


def test_pseudo_groups_are_the_planted_ones():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (1500,), generator=g)
    bias = torch.where(torch.rand(1500, generator=g) < 0.9, y, torch.randint(0, 3, (1500,), generator=g))
    x = torch.cat([3 * torch.eye(3)[bias], torch.eye(3)[y] + torch.randn(1500, 3, generator=g)], 1)
    names = ("a", "b", "c")
    split = (torch.arange(1500) % 2).long()
    data = DataSet(name="planted", inputs=Memory(x), y=y, classes=names, split=split)  # no bias column
    codes = groups_for("val-pseudo-groups", data, 0, 0)
    val = data.rows("val")
    assert bool((codes[val] >= 0).all())
    assert bool((codes[data.rows("train")] == -1).all())
    conflicting = codes[val] != 4 * y[val]  # the cell (y, y) of three classes has the code 3 y + y
    planted = bias[val] != y[val]
    assert float(conflicting[planted].double().mean()) > 0.95
    assert float(conflicting[~planted].double().mean()) < 0.05


def test_small_cells_are_pooled_by_class_and_then_together():
    y = torch.tensor([0] * 30 + [1] * 13)
    o = torch.tensor([0] * 18 + [1] * 6 + [2] * 6 + [1] * 10 + [0] * 3)
    code = pooled(y, o, 3)
    sizes = [18, 12, 10, 3]  # (0, 0); the rest of class 0; (1, 1); what is left of class 1
    assert [int((code == c).sum()) for c in dict.fromkeys(code.tolist())] == sizes


def test_k_means_reaches_what_scikit_learn_reaches():
    g = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(40, 2, generator=g) * 0.3 + torch.tensor(c) for c in ([0.0, 0], [4.0, 0], [0.0, 4])])
    ours = k_means(x, 3, 0)
    theirs = KMeans(3, n_init=5, random_state=0).fit(x.numpy())
    inertia = sum(float((x[ours == k] - x[ours == k].mean(0)).square().sum()) for k in range(3))
    assert inertia == pytest.approx(theirs.inertia_, rel=1e-4)
    assert len(np.unique(k_means(torch.zeros(5, 2), 3, 0).numpy())) == 1  # equal rows cannot be told apart


def test_the_score_is_the_worst_groups():
    data = package.load("toy")
    guessed = torch.full((len(data),), -1)
    guessed[:4] = torch.tensor([0, 0, 7, 7])
    logits = torch.eye(len(data.classes))[data.y[:5]].clone()
    logits[2] = logits[2].roll(1)  # one of the rows of group 7 is wrong; row 4 is in no group
    logits[4] = logits[4].roll(1)
    assert score("val-pseudo-groups", logits, data, torch.arange(5), guessed) == 0.5


@pytest.mark.parametrize("rule", ["val-pseudo-groups", "val-worst-slice"])
def test_a_run_says_what_missing_labels_cost(rule, tmp_path, own_cache):
    settings = {"select.rule": rule, "train.steps": 20, "train.batch": 64, "select.every": "5 steps"}
    run = package.train(SOURCE, model="mlp", out=tmp_path / "run", settings=settings)
    chosen = run.outcome["selection"]
    assert chosen["labels"] == ["y"]
    assert run.config["labels"]["selection"] == ["y"]
    assert chosen["cost"]["best"] >= chosen["cost"]["chosen"]
    looks = [row for row in run.log() if row["kind"] == "val"]
    assert max(row[rule] for row in looks) == chosen["score"]
    other = package.train(SOURCE, model="mlp", out=tmp_path / "other", settings={**settings, "select.rule": "val-worst-group"})
    assert other.outcome["selection"]["score"] == pytest.approx(chosen["cost"]["best"])
    assert other.outcome["selection"]["step"] == chosen["cost"]["step"]


def test_what_labels_cost_in_words():
    known = Known()
    for worst, step, chosen in ((0.2, 5, True), (0.6, 10, False), (0.5, 15, True)):
        known.look(worst, step, chosen)
    assert (known.chosen, known.best, known.step) == (0.5, 0.6, 10)
    assert "missing labels cost 10.0 points" in known.words("val-worst-slice")


def test_several_labels_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"select\.rule=val-pseudo-groups needs one class per row"):
        package.train("tiles:base=digits,rows=200", out=tmp_path / "x", settings={"select.rule": "val-pseudo-groups"})
