"""xrm_twins: each network learns from its half, labels flip as often as they should, a step by hand."""

import copy

import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, sgd_step, toy
from unskew.methods.xrm_twins import flips


def test_flips_grow_from_chance_to_certainty():
    logits = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [60.0, 0.0, 0.0]])
    p = float(torch.tensor(1.0).exp() / (torch.tensor(1.0).exp() + 2))
    code, chance = flips(logits)
    torch.testing.assert_close(chance, torch.tensor([0.0, (p - 1 / 3) * 3 / 2, 1.0]), rtol=1e-5, atol=1e-6)
    assert code[1:].tolist() == [0, 0]


def test_a_step_by_hand():
    method = make("xrm_twins", {"flip": "false"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    means = []
    for c in range(3):
        rows = [i for i in range(12) if int(batch.y[i]) == c]
        per_row = [
            F.cross_entropy((method.model, method.twin)[int(method.side[i])](batch.x[i : i + 1]), batch.y[i : i + 1])
            for i in rows
        ]
        means += [torch.stack(per_row).mean()] if rows else []
    said = torch.stack([method.model(batch.x).argmax(1), method.twin(batch.x).argmax(1)], 1)
    descend(torch.stack(means).mean(), method.parameters())
    for a, b in zip(ours.parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    assert torch.equal(ours.said[:12], said)
    assert bool((ours.said[12:] == -1).all())
    assert torch.equal(ours.label[:12], batch.y)


def test_a_certain_network_corrects_the_other_half():
    method = make("xrm_twins").train()
    for network in (method.model, method.twin):
        torch.nn.init.zeros_(network.head.weight)
        network.head.bias.data = torch.tensor([200.0, 0.0, 0.0]).double()
    batch = batch_of(method)
    assert bool((batch.y != 0).any())
    method.loss(batch)
    assert bool((method.label[:12] == 0).all())
    assert bool((method.label[12:] == -1).all())
    assert set(method.side.tolist()) == {0, 1}
    torch.testing.assert_close(method.predict(batch.x)[0], torch.tensor([200.0, 0, 0]).double())
    assert len(method.said) == len(toy())
