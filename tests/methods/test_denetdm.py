"""DeNetDM: both halves of a training by hand, distillation by another formula, and refusals."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, sgd_step
from unskew.core.errors import UserError
from unskew.methods.denetdm import DeNetDMConfig, distilled

SMALL = {"shallow.model": "mlp", "shallow.hidden": "6", "deep.model": "mlp", "deep.hidden": "5,5,6"}


def test_distillation_is_the_divergence_and_the_teachers_entropy():
    z, t = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    p = torch.distributions.Categorical(logits=t / 2)
    divergence = torch.distributions.kl_divergence(p, torch.distributions.Categorical(logits=z / 2))
    torch.testing.assert_close(distilled(z, t, 2.0), 4 * (divergence + p.entropy()))


def test_the_experts_learn_on_the_sum_of_their_features():
    method = make("denetdm", {**SMALL, "first": "1"})
    method.begin(10, 5)
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    h = method.shallow.blocks(batch.x) + method.deep.blocks(batch.x)
    experts = [p for p in (*method.shallow.parameters(), *method.deep.parameters()) if p.requires_grad]
    descend(F.cross_entropy(method.shallow.head(h), batch.y), experts)
    for (name, a), b in zip(ours.named_parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b, msg=name)


def test_the_network_learns_beside_the_deep_and_from_the_shallow_expert():
    method = make("denetdm", {**SMALL, "distil": "0.3", "first": "0.2"})
    method.begin(10, 5)
    method.age += 1
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    z, head = method.model(batch.x), method.shallow.head
    teacher, biased = head(method.shallow.blocks(batch.x)).detach(), head(method.deep.blocks(batch.x)).detach()
    soft = 4 * F.cross_entropy(z / 2, (teacher / 2).softmax(1))
    descend(F.cross_entropy(z + biased, batch.y) + 0.3 * soft, method.model.parameters())
    for (name, a), b in zip(ours.named_parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b, msg=name)
    assert method.prelude == 1
    torch.testing.assert_close(method.predict(batch.x), method.model(batch.x))


def test_experts_of_different_width_keep_their_own_last_layers():
    method = make("denetdm", {**SMALL, "deep.hidden": "5,4"}).train()
    batch = batch_of(method)
    expected = F.cross_entropy(method.shallow(batch.x) + method.deep(batch.x), batch.y)
    torch.testing.assert_close(method.loss_experts(batch)["experts_ce"], expected)


def test_refusals():
    with pytest.raises(UserError, match="first and temperature must be above 0"):
        DeNetDMConfig(first=0)
    with pytest.raises(UserError, match="first=5 epochs of the experts take all 10 steps"):
        make("denetdm", SMALL).begin(10, 2)
