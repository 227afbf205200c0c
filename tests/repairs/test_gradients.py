"""Per-sample gradients against autograd, and their scores against SciPy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import vonmises_fisher
from torch import nn

import unskew as package
from unskew.core.errors import UserError
from unskew.parts.per_sample import Outer, find_layer, gradients
from unskew.repairs import gradient_probabilities
from unskew.repairs import gradients as scores
from unskew.repairs.gradients import (
    acceptance,
    share_within,
    softmax_within,
    unit,
    von_mises_fisher,
)


def network(dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)).to(dtype).eval()


def rows(n=40, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 6, generator=generator, dtype=dtype), torch.randint(0, 4, (n,), generator=generator)


def by_autograd(model, x, y, parameters):
    made = []
    for one, label in zip(x, y, strict=True):
        loss = F.cross_entropy(model(one[None]), label[None])
        made.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)]))
    return torch.stack(made)


@pytest.mark.parametrize("bias", [False, True])
def test_last_layer_in_closed_form_equals_autograd(bias):
    model, (x, y) = network(), rows()
    g = gradients(model, find_layer(model), x, y, bias)
    weight = by_autograd(model, x, y, [model[2].weight]).view(len(x), 4, 8)
    if bias:
        weight = torch.cat([weight, by_autograd(model, x, y, [model[2].bias])[:, :, None]], 2)
    whole = weight.flatten(1)
    torch.testing.assert_close(g.norm(), whole.norm(dim=1), rtol=0, atol=1e-12)
    torch.testing.assert_close(g.absolute_sum(torch.zeros(40).long(), 1)[0], whole.abs().sum(0), rtol=0, atol=1e-12)
    chosen = torch.tensor([[0, 5, 17, 30]])
    torch.testing.assert_close(g.only(chosen, None), whole[:, chosen[0]], rtol=0, atol=1e-12)
    by_class = torch.stack([torch.arange(4) + c for c in range(4)])
    torch.testing.assert_close(g.only(by_class, y), whole.gather(1, by_class[y]), rtol=0, atol=1e-12)


def test_closed_form_in_single_precision_stays_exact_where_the_model_is_sure():
    model, (x, y) = network(torch.float32), rows(dtype=torch.float32)
    with torch.no_grad():
        model[2].weight *= 30  # probabilities of 1 - 1e-12
    exact = by_autograd(model.double(), x.double(), y, [model[2].weight]).norm(dim=1)
    ours = gradients(model.float(), find_layer(model), x, y).norm()
    torch.testing.assert_close(ours, exact, rtol=1e-4, atol=1e-6)


def test_other_layers_equal_autograd():
    model, (x, y) = network(), rows()
    g = gradients(model, find_layer(model, "0"), x, y, bias=True)
    whole = by_autograd(model, x, y, [model[0].weight, model[0].bias])
    torch.testing.assert_close(g.g, whole, rtol=0, atol=1e-10)
    assert gradient_probabilities(model, (x, y), layer="0", k=10).shape == (40,)
    with pytest.raises(UserError, match="no layer 'conv9'"):
        find_layer(model, "conv9")


def test_all_parameters_are_one_long_gradient():
    model, (x, y) = network(), rows()
    g = gradients(model, find_layer(model, "all"), x, y)
    torch.testing.assert_close(g.g, by_autograd(model, x, y, list(model.parameters())), rtol=0, atol=1e-10)


@pytest.mark.parametrize("variant", ["softmax", "loss", "logit"])
def test_scores_without_gradients_by_their_definition(variant):
    model, (x, y) = network(), rows()
    z = model(x).detach()
    easy = {
        "softmax": [float(F.softmax(row, 0)[c]) for row, c in zip(z, y, strict=True)],
        "loss": [1 / float(F.cross_entropy(row[None], c[None])) for row, c in zip(z, y, strict=True)],
        "logit": [float(row[c].exp()) for row, c in zip(z, y, strict=True)],
    }[variant]
    totals = {int(c): sum(e for e, d in zip(easy, y, strict=True) if d == c) for c in y.unique()}
    share = np.array([e / totals[int(c)] for e, c in zip(easy, y, strict=True)])
    np.testing.assert_allclose(gradient_probabilities(model, (x, y), variant=variant).numpy(), share.min() / share, rtol=1e-6)


def test_direction_score_is_the_density_of_scipy():
    generator = torch.Generator().manual_seed(0)
    v = unit(torch.randn(60, 5, generator=generator, dtype=torch.float64) + 1)
    mean, kappa, length = von_mises_fisher(v.sum(0)[None], torch.tensor([60]))
    resultant = float(v.sum(0).norm()) / 60
    assert float(length) == pytest.approx(resultant)
    assert float(kappa) == pytest.approx(resultant * (5 - resultant**2) / (1 - resultant**2))
    density = vonmises_fisher(mean[0].numpy(), float(kappa)).pdf(v.numpy())
    ours = softmax_within(kappa * (v @ mean[0]), torch.zeros(60).long())
    np.testing.assert_allclose(ours, density / density.sum(), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "settings", [{}, {"dominant": "class"}, {"within": "all"}, {"scale": "class"}, {"lambda_": 0.0}, {"k": 7}]
)
def test_probabilities_by_the_formulas_from_whole_gradients(settings):
    model, (x, y) = network(), rows(80)
    k, lam = settings.get("k", 100), settings.get("lambda_", 1.0)
    g = by_autograd(model, x, y, [model[2].weight])
    group = y if settings.get("within", "class") == "class" else torch.zeros_like(y)
    magnitude = share_within(1 / g.norm(dim=1), group)
    direction = torch.zeros(80, dtype=torch.float64)
    for c in torch.unique(group).tolist():
        mine = (group == c).nonzero().flatten()
        part = g[mine]
        if settings.get("dominant") == "class":
            coordinates = part.abs().sum(0).topk(min(k, g.shape[1])).indices
        else:
            coordinates = g.abs().sum(0).topk(min(k, g.shape[1])).indices
        v = unit(part[:, coordinates])
        mean, kappa, _ = von_mises_fisher(v.sum(0)[None], torch.tensor([len(mine)]))
        density = (kappa * (v @ mean[0] - 1)).exp()
        direction[mine] = density / density.sum()
    score = (magnitude + lam * direction) / (1 + lam)
    expected = acceptance(score, y, settings.get("scale", "all"))
    torch.testing.assert_close(gradient_probabilities(model, (x, y), **settings), expected, rtol=0, atol=1e-6)
    assert float(expected.max()) == 1


def test_norm_variant_and_a_layer_too_large_to_keep(monkeypatch):
    model, (x, y) = network(), rows()
    norm = by_autograd(model, x, y, [model[2].weight]).norm(dim=1)
    torch.testing.assert_close(gradient_probabilities(model, (x, y), variant="norm"), norm / norm.max(), rtol=0, atol=1e-12)
    data = package.load("planted:rows=400,bias=0.5")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        wide = nn.Sequential(nn.Linear(data.shape[0], 300), nn.ReLU(), nn.Linear(300, len(data.classes))).eval()
    # 300 features against k = 5: the rows are read twice; with k = 5 of all and everything kept, the same comes out.
    twice = gradient_probabilities(wide, data, k=5)
    monkeypatch.setattr(Outer, "small", lambda self, k: True)
    torch.testing.assert_close(twice, gradient_probabilities(wide, data, k=5), rtol=1e-5, atol=1e-12)


def test_train_mode_leaves_the_network_as_it_was():
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).double().eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    x, y = rows()
    in_train = gradient_probabilities(model, (x, y), mode="train")
    assert not torch.equal(in_train, gradient_probabilities(model, (x, y)))
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not model.training


@pytest.mark.parametrize(
    "settings", [{"k": 5}, {"k": 5, "within": "all", "dominant": "class"}, {"variant": "logit"}, {"k": 2, "layer": "0"}]
)
def test_gradients_that_are_computed_again_in_every_pass(monkeypatch, settings):
    model, (x, y) = network(torch.float32), rows(60, torch.float32)
    monkeypatch.setattr(scores, "BATCH", 16)
    kept = gradient_probabilities(model, (x, y), **settings)
    monkeypatch.setattr(scores, "KEPT", 0)
    assert torch.equal(gradient_probabilities(model, (x, y), **settings), kept)
