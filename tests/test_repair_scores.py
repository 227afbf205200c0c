"""Per-sample gradients against autograd and scipy; AFLite against scikit-learn; the de-noising rule by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr, vonmises_fisher
from sklearn.linear_model import LogisticRegression
from torch import nn

import unskew as package
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.losses import gce
from unskew.repairs import aflite, denoise, gradient_probabilities
from unskew.repairs.aflite import predictability
from unskew.repairs.gradients import (
    Outer,
    acceptance,
    find_layer,
    gradients,
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


def test_gce_value_and_gradient():
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    y = torch.arange(9) % 4
    p = x.softmax(1).gather(1, y[:, None]).squeeze(1)
    torch.testing.assert_close(gce(x, y, 0.7), (1 - p**0.7) / 0.7, rtol=0, atol=1e-12)
    (true,) = torch.autograd.grad(gce(x, y, 0.7).sum(), x)
    (plain,) = torch.autograd.grad((p.detach() ** 0.7 * F.cross_entropy(x, y, reduction="none")).sum(), x)
    torch.testing.assert_close(true, plain, rtol=0, atol=1e-12)
    (scaled,) = torch.autograd.grad(gce(x, y, 0.7, scaled=True).sum(), x)
    torch.testing.assert_close(scaled, 0.7 * true, rtol=0, atol=1e-12)
    assert float(gce(torch.tensor([[-200.0, 0.0]]), torch.tensor([0]))[0]) == pytest.approx(1 / 0.7)


def test_aflite_scores_rank_as_scikit_learn_fits_do():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (300,), generator=generator)
    x = F.one_hot(y, 3) + 0.9 * torch.randn(300, 3, generator=generator)
    ours = predictability(torch.cat([torch.ones(300, 1), x], 1), y, 32, 0.5, None, stream(0, "aflite", 0))
    same, right, held = stream(0, "aflite", 0), np.zeros(300), np.zeros(300)
    for _ in range(32):
        inside = (torch.randperm(300, generator=same) < 150).numpy()
        fitted = LogisticRegression().fit(x[inside], y[inside])
        right += (fitted.predict(x) == y.numpy()) & ~inside
        held += ~inside
    assert spearmanr(ours, right / held).statistic > 0.95


def test_aflite_drops_what_the_feature_solves_and_goes_on_after_an_interruption(tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (400,), generator=generator)
    z = torch.where(torch.arange(400) < 300, y, torch.randint(0, 2, (400,), generator=generator)).float()[:, None]
    z = z + 0.05 * torch.randn(400, 1, generator=generator)
    settings = {"models": 16, "slice": 0.1, "size": 0.3}
    kept, score, rounds = aflite(z, y, **settings)
    assert rounds > 2
    assert float(score[300:].mean()) < float(score[:300].mean())
    agree = (z[:, 0].round() == y).float()
    assert float(agree[kept].mean()) < float(agree.mean()) - 0.05
    seen = []

    def one_round(*args):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return predictability(*args)

    monkeypatch.setitem(aflite.__globals__, "predictability", one_round)
    with pytest.raises(KeyboardInterrupt):
        aflite(z, y, state=tmp_path / "state", **settings)
    monkeypatch.undo()
    resumed = aflite(z, y, state=tmp_path / "state", **settings)
    assert torch.equal(resumed[0], kept)
    assert resumed[2] == rounds


def test_denoise_by_hand():
    # p = (.9, .1) for all rows; labels 0 0 0 1: CE = -log .9 three times, -log .1 once.
    logits = torch.tensor([[0.9, 0.1]], dtype=torch.float64).log().expand(4, 2)
    found = denoise(logits, torch.tensor([0, 0, 0, 1]))
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert found.delta == pytest.approx((3 * -np.log(0.9) - np.log(0.1)) / (4 * entropy))
    assert found.clean.tolist() == [True, True, True, False]
    sure = denoise(torch.tensor([[90.0, 0.0], [90.0, 0.0]]), torch.tensor([0, 1]))  # no entropy at all: floored, not divided by 0
    assert bool(torch.isfinite(sure.loss / sure.entropy).all())
    assert sure.clean.tolist() == [True, False]


def test_network_repairs_through_the_command_line(unskew, tmp_path):
    source = "colored-mnist:base=digits,ratio=0.95,noise=0.05"
    small = ["train.epochs=3", "train.batch=64"]
    unskew("repair", source, "--with", "gradients", *small, "--out", "g.parquet")
    assert (tmp_path / "g-model" / "done.json").is_file()
    # The same network serves another setting of the scores, and other repairs.
    again = unskew("repair", source, "--with", "gradients", "lambda_=0", "run=g-model", *small, "--out", "g0.parquet")
    assert not (tmp_path / "g0-model").exists()
    assert again.stdout
    words = ["phi=color,texture", "models=4", "slice=0.2"]
    unskew("repair", source, "--with", "aflite", *words, "--out", "a.parquet")
    done = unskew("repair", source, "--with", "denoise", "train.epochs=4", "--out", "d.parquet", "--json")
    assert '"noisy"' in done.stdout
    unskew("train", source, "--weights", "g.parquet", "train.weights=sampler", "train.epochs=1", "--out", "run")
