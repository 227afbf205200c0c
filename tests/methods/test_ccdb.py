"""ccdb: its weights by hand and by what they promise, its stages, and what it refuses."""

import math
from fractions import Fraction

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.methods.ccdb import Config, balancing_weights, confusion
from unskew.records import Table


def test_weights_by_hand():
    # Class 0: 6 rows called 0, 2 called 1. Class 1: 1 called 0, 3 called 1. q = 7/12, 5/12.
    y = torch.tensor([0] * 8 + [1] * 4)
    o = torch.tensor([0] * 6 + [1] * 2 + [0] + [1] * 3)
    q = Fraction(7, 12), Fraction(5, 12)
    raw = {(0, 0): q[0] / 6, (0, 1): q[1] / 2, (1, 0): q[0] / 1, (1, 1): q[1] / 3}  # q / (M_yo / M_y) / M_y
    mean = (6 * raw[0, 0] + 2 * raw[0, 1] + raw[1, 0] + 3 * raw[1, 1]) / 12
    expected = [float(raw[a, b] / mean) for a, b in zip(y.tolist(), o.tolist(), strict=True)]
    assert balancing_weights(y, o, 2).tolist() == pytest.approx(expected, rel=1e-12)
    cells = {(a, b): q[b] / (Fraction(int(n), (8, 4)[a])) / int(n) for (a, b), n in zip(raw, (6, 2, 1, 3), strict=True)}
    mean = (6 * cells[0, 0] + 2 * cells[0, 1] + cells[1, 0] + 3 * cells[1, 1]) / 12
    expected = [float(cells[a, b] / mean) for a, b in zip(y.tolist(), o.tolist(), strict=True)]
    assert balancing_weights(y, o, 2, "cell").tolist() == pytest.approx(expected, rel=1e-12)


def test_opinions_are_distributed_alike_in_every_class():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 4, (3000,), generator=g)
    o = torch.where(torch.rand(3000, generator=g) < 0.8, y, torch.randint(0, 4, (3000,), generator=g))
    w = balancing_weights(y, o, 4)
    mass = torch.zeros(16, dtype=torch.float64).index_add_(0, 4 * y + o, w).view(4, 4)
    torch.testing.assert_close(mass.sum(1), torch.full((4,), 750.0).double())  # equal totals of the classes
    torch.testing.assert_close(mass / mass.sum(1, keepdim=True), (o.bincount().double() / 3000).expand(4, 4))


def test_an_empty_cell_leaves_its_share_to_the_others_and_a_missing_class_does_no_harm():
    y, o = torch.tensor([0, 0, 0, 2, 2]), torch.tensor([0, 0, 2, 2, 2])
    w = balancing_weights(y, o, 3)
    assert w.isfinite().all()
    assert float(w[:3].sum()) == pytest.approx(float(w[3:].sum()))
    assert confusion(y, o, 3).sum() == 5


def test_stages_and_what_lies_beside_the_run(tmp_path):
    source = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
    short = {"train.steps": 4, "train.batch": 256, "steps": "6", "stages": "2"}
    run = package.train(source, "ccdb", model="mlp", out=tmp_path / "run", settings=short)
    assert run.finished
    assert run.config["labels"]["training"] == ["y"]
    table = Table.read(tmp_path / "run-weights.parquet")
    data = package.load(source)
    expected = balancing_weights(data.y[table.index], table.column("opinion"), 3)
    torch.testing.assert_close(table.column("weight"), expected)
    kept = Table.read(tmp_path / "run-biased2" / "trained.parquet")
    assert len(kept) < len(table)  # the second biased model saw only rows that the first calls correctly


def test_refusals(tmp_path):
    with pytest.raises(UserError, match="ccdb needs one class per row"):
        package.train("tiles:base=digits,rows=200", "ccdb", out=tmp_path / "x")
    with pytest.raises(UserError, match="must lie in"):
        Config(q=math.inf)
