"""Gradient reversal: a whole step by hand, and wrong settings."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, features, make, same, sgd_step
from unskew.core.errors import UserError


def test_grl_step():
    method = make("grl", {"mu": "0.7"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    head = method.h.heads[0]
    task = F.cross_entropy(method.model(batch.x), batch.y)
    told = F.cross_entropy(head(features(method.model, batch.x)), batch.bias[:, 0])
    task_grad = torch.autograd.grad(task, list(method.model.parameters()), retain_graph=True)
    told_grad = torch.autograd.grad(told, list(method.model.parameters()), retain_graph=True, allow_unused=True)
    descend(told, head.parameters())
    with torch.no_grad():
        for parameter, a, b in zip(method.model.parameters(), task_grad, told_grad, strict=True):
            parameter -= 0.1 * (a - (0.7 * b if b is not None else 0))
    same(ours, method)


def test_bad_settings_say_what_is_wrong():
    with pytest.raises(UserError, match="must not be negative"):
        make("grl", {"mu": "-1"})
