"""Group DRO: a whole step and its weights by hand."""

import copy
import math

import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, sgd_step
from unskew.methods.group_dro import exponentiated_update


def test_group_dro_step_and_weights():
    method = make("group_dro", {"eta": "0.5"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    ce = F.cross_entropy(method.model(batch.x), batch.y, reduction="none")
    groups = torch.unique(batch.group)
    means = {int(g): ce[batch.group == g].mean() for g in groups}
    q = method.q.clone()
    for g, value in means.items():
        q[g] = q[g] * math.exp(0.5 * float(value.detach()))
    q = q / q.sum()
    descend(sum(q[g] * value for g, value in means.items()), method.model.parameters())
    torch.testing.assert_close(ours.q.double(), q.double(), rtol=1e-5, atol=1e-7)
    for a, b in zip(ours.model.parameters(), method.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
    assert torch.isfinite(exponentiated_update(torch.tensor([0.5, 0.5]), torch.tensor([1e4, 0.0]), 1.0)).all()


def test_group_dro_moves_its_weights_once_a_step():
    method = make("group_dro", {"eta": "1"}).train()
    batch = batch_of(method)
    method.loss(batch)
    moved = method.q.clone()
    method.loss(batch)  # the second part of the same step
    assert torch.equal(method.q, moved)
    method.age += 1
    method.loss(batch)
    assert not torch.equal(method.q, moved)
