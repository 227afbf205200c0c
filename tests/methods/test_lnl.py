"""Learning not to learn: a whole step by hand, and wrong settings."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, features, make, same, sgd_step, toy
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory


def test_lnl_step():
    method = make("lnl", {"lambda_": "0.3", "mu": "0.5", "hidden": "5"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    x, y, b = batch.x, batch.y, batch.bias[:, 0]
    head = method.h.heads[0]
    p = torch.softmax(head(features(method.model, x)), 1)
    descend(F.cross_entropy(method.model(x), y) + 0.3 * (p * p.log()).sum(1).mean(), method.model.parameters())
    told = F.cross_entropy(head(features(method.model, x)), b)
    up = torch.autograd.grad(told, list(method.model.blocks.parameters()), retain_graph=True)
    descend(told, head.parameters())
    with torch.no_grad():
        for parameter, g in zip(method.model.blocks.parameters(), up, strict=True):
            parameter += 0.1 * 0.5 * g  # f climbs, at mu times the rate
    same(ours, method)


def test_bad_settings_say_what_is_wrong():
    data = toy()
    blind = DataSet(name="blind", inputs=Memory(data.inputs.x), y=data.y, classes=data.classes, split=data.split)
    with pytest.raises(UserError, match="needs a bias column"):
        make("lnl", data=blind)
    with pytest.raises(UserError, match="no layer 'conv9'"):
        make("lnl", {"at": "conv9"})
