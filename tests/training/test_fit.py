"""The loop: accumulated parts, clipping, precisions."""

import math

import pytest
import torch

import unskew as package
from tests.support.loop import run
from tests.support.methods import toy
from tests.support.runs import weights
from unskew.training.make import make_method

SMALL = {"train.epochs": 2, "train.batch": 64}


def test_accumulated_parts_give_the_gradient_of_the_whole():
    data = toy()
    whole, parts = make_method("erm", {}, "mlp", {}, data, 0).double(), make_method("erm", {}, "mlp", {}, data, 0).double()
    run(whole, data, 0, 5)
    run(parts, data, 0, 5, accumulate=3)  # 16 rows as 6, 6 and 4
    for a, b in zip(whole.state_dict().values(), parts.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_clipping_bounds_the_update(tmp_path):
    settings = {"optim.name": "sgd", "optim.momentum": 0, "optim.lr": 1.0, "train.steps": 1}
    before = package.train("toy", out=tmp_path / "a", settings=settings | {"train.clip": 1e-9})
    after = package.train("toy", out=tmp_path / "b", settings=settings | {"train.clip": 0.01})
    moved = sum(
        float((a - b).square().sum())
        for a, b in zip(weights(before.path).values(), weights(after.path).values(), strict=True)
        if a.is_floating_point()
    )
    assert math.sqrt(moved) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_precisions_train_and_can_be_judged(precision, tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings=SMALL | {"train.precision": precision, "train.epochs": 10})
    assert package.evaluate(run).groups.aligned.value > 0.9
