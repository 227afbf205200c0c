"""Optimisers and schedules by hand."""

import math

import pytest
import torch

import unskew as package
from unskew.training.optim import OptimConfig, make_optimizer, schedule_factor


def test_schedules_by_hand():
    step = OptimConfig(schedule="step", decay=0.5, every="2 epochs")
    assert [schedule_factor(step, s, 100, 10) for s in (0, 19, 20, 45)] == [1, 1, 0.5, 0.25]
    milestones = OptimConfig(schedule="milestones", decay=0.1, milestones=("50%", "70 steps"))
    assert [schedule_factor(milestones, s, 100, 10) for s in (49, 50, 70)] == pytest.approx([1, 0.1, 0.01])
    cosine = OptimConfig(schedule="cosine", warmup="10 steps")
    assert schedule_factor(cosine, 4, 100, 10) == pytest.approx(0.5 * 0.5 * (1 + math.cos(math.pi * 0.04)))


def test_the_rate_reaches_the_optimiser(tmp_path):
    run = package.train(
        "toy",
        out=tmp_path / "r",
        settings={"optim.lr": 0.1, "optim.schedule": "cosine", "train.steps": 100, "train.log_every": 50},
    )
    rates = {row["step"]: row["lr"] for row in run.log() if row["kind"] == "train"}
    assert rates[51 - 1] == pytest.approx(0.1 * 0.5 * (1 + math.cos(math.pi * 0.49)))


def test_sgd_step_by_hand():
    w = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = make_optimizer([w], OptimConfig(name="sgd", lr=0.1, momentum=0.9, weight_decay=0.5))
    for gradient in (1.0, 1.0):
        w.grad = torch.tensor([gradient])
        optimizer.step()
    # v1 = 1 + .5 = 1.5, w = .85; v2 = .9 * 1.5 + 1 + .425 = 2.775, w = .5725
    assert w.item() == pytest.approx(0.5725)
