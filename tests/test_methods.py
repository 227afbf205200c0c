"""Each joint method: one whole step derived another way, parameters after the step included; and what the cards say of other versions."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unskew as package
from tests.test_contract_methods import toy
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.dataset import DataSet, Memory
from unskew.losses import confusion, learned_mixin_h, negative_entropy, relative_difficulty, rubi
from unskew.methods.group_dro import exponentiated_update
from unskew.methods.hex import nglcm, project_out, quantise
from unskew.nn import GradientReversal
from unskew.parts.bias_heads import bias_loss, colour_levels
from unskew.records import Batch, Run
from unskew.training.make import make_method, training_data, warm_start

G = {"g.model": "mlp", "g.hidden": "6", "g.inputs": "1"}


def make(name, settings=None, data=None, model="mlp", **model_settings):
    return make_method(name, settings or {}, model, model_settings or {"hidden": "8"}, data or toy(), 0).double()


def batch_of(method, rows=12, data=None):
    data = data or toy()
    index = torch.arange(rows)
    columns = {"index": index, "x": data.inputs.x[:rows], "y": data.y[:rows]}
    if "bias" in method.sees:
        columns |= {"bias": data.bias[:rows], "group": data.group[:rows]}
    return Batch(**columns)


def sgd_step(method, batch, lr=0.1):
    """One step of the method, each optimiser plain SGD: what the loop does without momentum."""
    sets = {name: torch.optim.SGD(p, lr=lr) for name, p in method.parameter_sets().items()}

    def update(batch, part="", optimizers=None):
        method.zero_grad(set_to_none=True)
        terms = method(batch.columns(), part)
        sum(terms.values()).backward()
        for name in optimizers if optimizers is not None else sets:
            sets[name].step()
        return {k: v.detach() for k, v in terms.items()}

    method.train()
    return method.step(batch, update)


def descend(loss, parameters, lr=0.1):
    parameters = list(parameters)
    for p, g in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        if g is not None:
            with torch.no_grad():
                p -= lr * g


def same(a, b):
    for (k, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11, msg=k)


def hsic_by_loops(u, v, sigma_u, sigma_v):
    """The unbiased estimator as sums over distinct rows, equation 5 of Song et al. written out."""
    m = len(u)
    k = [
        [math.exp(-float((u[i] - u[j]).square().sum()) / (2 * sigma_u**2)) if i != j else 0.0 for j in range(m)] for i in range(m)
    ]
    h = [
        [math.exp(-float((v[i] - v[j]).square().sum()) / (2 * sigma_v**2)) if i != j else 0.0 for j in range(m)] for i in range(m)
    ]
    trace = sum(k[i][j] * h[j][i] for i in range(m) for j in range(m))
    both = sum(map(sum, k)) * sum(map(sum, h)) / ((m - 1) * (m - 2))
    cross = 2 / (m - 2) * sum(k[i][j] * h[j][q] for i in range(m) for j in range(m) for q in range(m))
    return (trace + both - cross) / (m * (m - 3))


def features(net, x):
    return net.blocks(x)


def kernel(z, sigma):
    off = 1 - torch.eye(len(z), dtype=z.dtype)
    return torch.exp(-(z[:, None] - z[None]).square().sum(2) / (2 * sigma**2)) * off


def hsic(u, v, sigma=1.0):
    a, b, m = kernel(u, sigma), kernel(v, sigma), len(u)
    one = torch.ones(m, dtype=u.dtype)
    total = torch.trace(a @ b) + (one @ a @ one) * (one @ b @ one) / ((m - 1) * (m - 2)) - 2 / (m - 2) * (one @ a @ b @ one)
    return total / (m * (m - 3))


@pytest.mark.parametrize("order", ["g-first", "f-first"])
def test_rebias_step(order):
    settings = {**G, "order": order, "lambda_f": "0.7", "lambda_g": "0.4", "g_updates": "2"}
    method = make("rebias", settings)
    ours, batch = copy.deepcopy(method), batch_of(method)
    x, y = batch.x, batch.y
    terms = sgd_step(ours, batch)
    f, g = method.model, method.g[0]

    def move_f():
        loss = F.cross_entropy(f(x), y) + 0.7 * hsic(features(f, x), features(g, x))
        descend(loss, f.parameters())

    def move_g():
        for _ in range(2):
            loss = F.cross_entropy(g(x), y) - 0.4 * hsic(features(f, x), features(g, x))
            descend(loss, g.parameters())

    for move in (move_g, move_f) if order == "g-first" else (move_f, move_g):
        move()
    same(ours.model, method.model)
    same(ours.g, method.g)
    assert set(terms) == {"ce", "hsic", "g_ce", "g_hsic"}
    z, v = features(f, x).detach()[:7], features(g, x).detach()[:7]
    assert float(hsic(z, v)) == pytest.approx(hsic_by_loops(z, v, 1.0, 1.0))


def test_rebias_median_width_is_renewed_once_an_epoch():
    data = toy()
    method = make("rebias", {**G, "sigma": "median"})
    method.begin(9, 4)
    widths = []
    for k in range(9):  # 64 rows: four batches of 16 an epoch
        index = torch.arange(16) + 16 * (k % 4)
        sgd_step(method, Batch(index=index, x=data.inputs.x[index], y=data.y[index]), lr=0.05)
        method.age += 1
        widths.append(method.width.clone())
    changed = [k for k in range(1, 9) if not torch.equal(widths[k], widths[k - 1])]
    assert changed == [3, 7]
    z = features(method.model, data.inputs.x[:16])
    off = ~torch.eye(16, dtype=torch.bool)
    first = make("rebias", {**G, "sigma": "median"})
    first.loss_f(Batch(index=torch.arange(16), x=data.inputs.x[:16], y=data.y[:16]))
    start = features(first.model, data.inputs.x[:16]).detach()
    assert float(first.width[0]) == pytest.approx(float(torch.cdist(start, start)[off].median()), rel=1e-6)
    assert z.isfinite().all()


def test_rebias_with_two_networks_sums_over_them():
    method = make("rebias", {**G, "g2.model": "mlp", "g2.hidden": "4", "g2.inputs": "1"})
    batch = batch_of(method)
    terms = method.loss_f(batch)
    f = features(method.model, batch.x)
    expected = hsic(f, features(method.g[0], batch.x)) + hsic(f, features(method.g[1], batch.x))
    torch.testing.assert_close(terms["hsic"], expected)


@pytest.mark.parametrize("frozen", [False, True])
def test_rubi_step(frozen):
    method = make("rubi", {**G, "frozen_head": str(frozen)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    x, y = batch.x, batch.y
    believed = method.head(features(method.g, x).detach())
    masked = F.cross_entropy(method.model(x) * torch.sigmoid(believed), y)
    question = F.cross_entropy(believed, y) if not frozen else 0
    trained = [*method.model.parameters(), *([] if frozen else method.head.parameters()), *method.g.parameters()]
    descend(masked + question + F.cross_entropy(method.g(x), y), trained)
    same(ours, method)
    assert torch.equal(ours.head.weight, make("rubi", {**G, "frozen_head": "true"}).head.weight) == frozen


@pytest.mark.parametrize("variant", ["learned", "product"])
def test_learned_mixin_step_after_pretraining(variant):
    method = make("learned_mixin", {**G, "pretrain": "0", "variant": variant})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    x, y = batch.x, batch.y
    log_g = F.log_softmax(method.g(x), 1).detach()
    a = F.softplus(method.head(features(method.model, x))) if variant == "learned" else torch.ones(len(x), 1)
    mixed = F.cross_entropy(F.log_softmax(method.model(x), 1) + a * log_g, y)
    p = torch.softmax(a * log_g, 1)
    entropy = -(p * p.log()).sum(1).mean() if variant == "learned" else 0.0
    descend(mixed + 0.36 * entropy, [p for p in (*method.model.parameters(), *method.head.parameters()) if p.requires_grad])
    same(ours, method)


def test_pretraining_moves_g_alone_and_then_never_again():
    data = toy()
    method = make("learned_mixin", {**G, "pretrain": "0.5"})
    method.begin(10, 4)  # half of an epoch of four steps
    assert method.prelude == 2
    before = copy.deepcopy(method)
    for k in range(2):
        index = torch.arange(16) + 16 * k
        assert set(sgd_step(method, Batch(index=index, x=data.inputs.x[index], y=data.y[index]))) == {"g_ce"}
        method.age += 1
    same(method.model, before.model)
    trained = copy.deepcopy(method.g)
    sgd_step(method, batch_of(method))
    same(method.g, trained)
    with pytest.raises(UserError, match="leave none to f"):
        method.begin(2, 4)
    assert not torch.equal(method.head.weight, before.head.weight)


def lff_weights_by_hand(history, alpha=0.7):
    """Averages and class maxima over all samples seen so far, from the whole history of (index, y, ce_b, ce_d)."""
    e, label = ({}, {}), {}
    for index, y, *losses in history:
        for k, i in enumerate(index.tolist()):
            label[i] = int(y[k])
            for average, ce in zip(e, losses, strict=True):
                average[i] = float(ce[k]) if i not in average else alpha * average[i] + (1 - alpha) * float(ce[k])
    index, y, *_ = history[-1]
    top = [{c: max(v for i, v in average.items() if label[i] == c) for c in set(label.values())} for average in e]
    b = torch.tensor([e[0][i] / top[0][label[i]] for i in index.tolist()])
    d = torch.tensor([e[1][i] / top[1][label[i]] for i in index.tolist()])
    return b / (b + d + 1e-8)


def test_lff_steps_with_smoothing_and_class_maxima():
    data = toy()
    method = make("lff")
    twin, history = copy.deepcopy(method), []
    for seed in range(6):
        index = torch.randperm(64, generator=torch.Generator().manual_seed(seed))[:12]
        batch = Batch(index=index, x=data.inputs.x[index], y=data.y[index])
        ce_b = F.cross_entropy(twin.biased(batch.x), batch.y, reduction="none")
        ce_d = F.cross_entropy(twin.model(batch.x), batch.y, reduction="none")
        history.append((index, batch.y, ce_b.detach(), ce_d.detach()))
        w = lff_weights_by_hand(history).double()
        p = torch.softmax(twin.biased(batch.x), 1).gather(1, batch.y[:, None])[:, 0]
        loss = ((1 - p**0.7) / 0.7).mean() + (w * ce_d).mean()  # W carries no gradient
        descend(loss, [*twin.model.parameters(), *twin.biased.parameters()])
        sgd_step(method, batch)
        torch.testing.assert_close(method._weight(index, batch.y).double(), w, rtol=1e-5, atol=1e-6)
    for own, other in ((method.model, twin.model), (method.biased, twin.biased)):
        for a, b in zip(own.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    # Normalising by the batch's own maximum, or without smoothing, gives other weights.
    _, y, ce_b, ce_d = history[-1]
    plain = relative_difficulty(ce_b, ce_d)
    assert float((plain - w).abs().max()) > 0.02
    by_batch = (
        torch.stack([ce_b[k] / ce_b[y == y[k]].max() for k in range(12)]),
        torch.stack([ce_d[k] / ce_d[y == y[k]].max() for k in range(12)]),
    )
    assert float((relative_difficulty(*by_batch) - w).abs().max()) > 0.02


def test_lff_maximum_falls_again_and_a_row_twice_counts_once():
    method = make("lff").train()
    index, y = torch.tensor([0, 3, 3]), torch.tensor([1, 1, 1])
    batch = Batch(index=index, x=torch.zeros(3, 2).double(), y=y)
    method._remember(batch, torch.tensor([8.0, 2.0, 2.0]), torch.tensor([1.0, 1.0, 1.0]))
    assert float(method.tree_b[method.start[1] + 1]) == 8
    method._remember(Batch(index=index[:1], x=batch.x[:1], y=y[:1]), torch.tensor([0.0]), torch.tensor([0.0]))
    assert float(method.loss_b[0]) == pytest.approx(5.6)
    assert float(method.tree_b[method.start[1] + 1]) == pytest.approx(5.6)
    for _ in range(4):
        method._remember(Batch(index=index[:1], x=batch.x[:1], y=y[:1]), torch.tensor([0.0]), torch.tensor([0.0]))
    assert float(method.tree_b[method.start[1] + 1]) == 2  # row 3 has the largest now
    assert int(method.used[1]) == 2


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


def test_blind_eye_step():
    method = make("blind_eye", {"alpha": "0.3"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    head = method.h.heads[0]
    descend(F.cross_entropy(head(features(method.model, batch.x).detach()), batch.bias[:, 0]), head.parameters())
    q = torch.softmax(head(features(method.model, batch.x)), 1)
    undecided = -(q.log().sum(1) / q.shape[1]).mean()
    descend(F.cross_entropy(method.model(batch.x), batch.y) + 0.3 * undecided, method.model.parameters())
    same(ours, method)


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


def test_missing_bias_values_teach_nothing():
    z = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    b = torch.tensor([0, -1, 2, -1, 1])
    known = b >= 0
    torch.testing.assert_close(bias_loss([z], [b]), F.cross_entropy(z[known], b[known]))
    assert float(bias_loss([z], [torch.full((5,), -1)])) == 0


def test_gradient_reversal():
    x = torch.tensor([1.5, -2.0], requires_grad=True)
    y = GradientReversal(0.25)(x)
    assert torch.equal(y, x)
    (y * torch.tensor([3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [-0.75, -1.0]


def test_losses_by_hand():
    z = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    p = z.softmax(1)
    assert float(confusion(z)) == pytest.approx(float(-p.log().mean()))
    assert float(negative_entropy(z)) == pytest.approx(float((p * p.log()).sum()))
    assert float(negative_entropy(torch.tensor([[1000.0, 0.0]]))) == 0  # an underflow is 0, not NaN
    assert float(confusion(torch.zeros(2, 4))[0]) == pytest.approx(math.log(4))
    maps = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(confusion(maps), torch.stack([confusion(m.flatten(1).T).mean() for m in maps]))
    y = torch.tensor([2])
    assert float(rubi(z, torch.full((1, 3), 50.0, dtype=torch.float64), y)) == pytest.approx(float(F.cross_entropy(z, y)))
    ce, h = learned_mixin_h(z, torch.zeros(1, 3, dtype=torch.float64), torch.ones(1, dtype=torch.float64), y, 1.0)
    assert float(ce) == pytest.approx(float(F.cross_entropy(z, y)))  # a g that knows nothing changes nothing
    assert float(h) == pytest.approx(math.log(3))


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


def test_reweight_gives_every_group_the_same_say():
    data = toy()
    method = make("reweight")
    counts = data.group.bincount(minlength=9)
    there = counts > 0
    totals = (method.group_weight.double() * counts)[there]
    torch.testing.assert_close(totals, totals[:1].expand_as(totals), rtol=1e-5, atol=1e-6)
    assert float(totals.sum()) == pytest.approx(64, rel=1e-5)


def test_hex_projection_is_orthogonal_to_what_the_texture_says():
    generator = torch.Generator().manual_seed(0)
    a, g = (torch.randn(20, 3, dtype=torch.float64, generator=generator) for _ in range(2))
    left = project_out(a, g.T @ g, g.T @ a, g, 1e-12)
    expected = a - g @ torch.linalg.inv(g.T @ g) @ g.T @ a
    torch.testing.assert_close(left, expected, rtol=0, atol=1e-8)
    assert float((g.T @ left).abs().max()) < 1e-7
    flat = torch.ones(20, 3, dtype=torch.float64)  # singular: the ridge keeps it solvable
    assert torch.isfinite(project_out(a, flat.T @ flat, flat.T @ a, flat, 1e-3)).all()


def test_hex_texture_by_loops():
    x = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    q = quantise(x, 16)
    assert int(q.max()) == 15
    grey = x.mean(1).flatten(1)
    assert torch.equal(q[0], torch.floor(grey[0] / grey[0].max() * 15))
    assert int(quantise(x - 0.5, 16).min()) == 0  # below 0 the darkest pixel is the floor
    lower, theta = torch.tensor([0.3, -2.0]), torch.tensor([1.5, 4.0, 9.0])
    made = nglcm(q, lower, theta)
    for i in range(2):
        for k in range(2):
            for m in range(3):
                total = 0.0
                for j in range(20):
                    d = (float(q[i, j - 1]) if j else 0.0) - float(q[i, j])
                    total += min(max(d - float(lower[k]), 0), 1) * min(max(float(q[i, j]) - float(theta[m]), 0), 1)
                assert float(made[i, k, m]) == pytest.approx(total, rel=1e-5)


def test_hex_judges_each_row_by_itself():
    data = toy()
    method = make("hex")
    for _ in range(3):
        sgd_step(method, batch_of(method))
    method.eval()
    whole = method.predict(data.inputs.x)
    torch.testing.assert_close(method.predict(data.inputs.x[:3]), whole[:3])


def test_colour_levels_at_half_size():
    x = torch.zeros(1, 3, 4, 4)
    x[0, 0, 0, 0], x[0, 1, 2, 2], x[0, 2, 0, 2] = 31 / 255, 32 / 255, 1.0
    levels = colour_levels(x)
    assert levels.shape == (1, 3, 2, 2)
    assert levels[0, 0, 0, 0] == 0
    assert levels[0, 1, 1, 1] == 1
    assert levels[0, 2, 0, 1] == 7
    assert int((levels == -1).sum()) == 9  # black is not a colour
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    normal = (x - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    assert torch.equal(colour_levels(normal, mean, std), levels)


def images(n=40):
    data = load("colored-mnist:base=digits,ratio=0.9")
    rows = data.rows("train")[:n]
    return data, rows


@pytest.mark.parametrize("name", ["lnl", "grl", "blind_eye"])
def test_the_colours_of_the_image_as_target_need_no_bias_column(name):
    data, rows = images()
    blind = data.only_bias([])
    method = make_method(name, {"target": "color", "at": "f"}, "lnl-net", {}, blind, 0)
    assert method.sees == frozenset()
    batch = Batch(index=rows, x=data.inputs.x[rows].float() / 255, y=data.y[rows])
    terms = method.loss(batch)
    assert all(t.isfinite() for t in terms.values())
    assert len(method.h.heads) == 3
    assert method.h(method.model.features(batch.x, "f"))[0].shape == (40, 8, 14, 14)
    with pytest.raises(UserError, match="half the image's size"):
        make_method(name, {"target": "color", "at": "conv1"}, "convnet1", {}, blind, 0)


def test_gray_sees_no_colour():
    data, rows = images()
    method = make_method("gray", {}, "mlp", {}, data, 0).eval()
    x = data.inputs.x[rows].float() / 255
    turned = x.flip(1)  # red for blue
    torch.testing.assert_close(method.predict(x), method.predict(turned))
    assert not torch.allclose(method.model(x), method.model(turned))


def test_stylised_adds_the_second_source():
    data = load("colored-mnist:base=digits,ratio=0.9")
    joined = training_data("stylised", {"second": "colored-mnist:base=digits,ratio=0.5,seed=3"}, data)
    n = len(data.rows("train"))
    assert len(joined.rows("train")) == 2 * n
    assert torch.equal(joined.rows("test"), data.rows("test"))
    x, fine = joined.inputs.rows(torch.tensor([0, len(data)]))
    second = load("colored-mnist:base=digits,ratio=0.5,seed=3")
    assert bool(fine.all())
    assert torch.equal(x[1], second.inputs.x[second.rows("train")[0]])
    with pytest.raises(UserError, match="needs the second source"):
        training_data("stylised", {}, data)
    with pytest.raises(UserError, match="inputs of shape"):
        training_data("stylised", {"second": "planted:rows=100"}, data)


def test_bad_settings_say_what_is_wrong(tmp_path):
    data = toy()
    with pytest.raises(UserError, match=r"no biased network.*g.model=mlp"):
        make("rebias")
    with pytest.raises(UserError, match=r"g.kernel is given but no g.model"):
        make("rebias", {"g.kernel": "1"})
    with pytest.raises(UserError, match="no model 'bagnat'"):
        make("rebias", {"g.model": "bagnat"})
    method = make("rebias", G)
    few = batch_of(method, rows=3)
    with pytest.raises(UserError, match="at least 4 rows"):
        method.loss(few)
    blind = DataSet(name="blind", inputs=Memory(data.inputs.x), y=data.y, classes=data.classes, split=data.split)
    with pytest.raises(UserError, match="needs a bias column"):
        make("lnl", data=blind)
    with pytest.raises(UserError, match="no layer 'conv9'"):
        make("lnl", {"at": "conv9"})
    with pytest.raises(UserError, match="must not be negative"):
        make("grl", {"mu": "-1"})
    with pytest.raises(UserError, match="not a finished run"):
        warm_start(make("erm"), str(tmp_path))


def test_warm_start_takes_the_network_and_refuses_another(tmp_path):
    source = "planted:rows=300,bias=0.5"
    first = package.train(source, "erm", model="mlp", out=tmp_path / "first", settings={"train.steps": 5, "model.hidden": "7"})
    second = package.train(
        source, "lff", model="mlp", out=tmp_path / "second",
        settings={"train.steps": 1, "optim.lr": 1e-12, "model.hidden": "7", "train.start": str(first.path)},
    )  # fmt: skip
    from unskew.core import checkpoint

    a, b = (checkpoint.read(r.path / "model.safetensors")[0] for r in (first, second))
    for key in (k for k in a if k.startswith("model.")):
        torch.testing.assert_close(a[key], b[key])
    with pytest.raises(UserError, match="another architecture"):
        package.train(
            source, "lff", model="mlp", out=tmp_path / "third",
            settings={"train.steps": 1, "model.hidden": "9", "train.start": str(first.path)},
        )  # fmt: skip
    assert not (tmp_path / "third").exists()


def test_jtt_weights_the_errors_of_a_first_training(tmp_path):
    source = "colored-mnist:base=digits,ratio=0.95"
    run = package.train(source, "jtt", out=tmp_path / "run", settings={"train.steps": 4, "method.first": "1", "upweight": "5"})
    assert run.finished
    assert (tmp_path / "run-first" / "done.json").is_file()
    assert '"errors"' in (tmp_path / "run" / "stage.json").read_text()
    assert Run(tmp_path / "run-first").outcome["steps"] == 6  # one epoch of its own, whatever train.steps says
    again = package.train(source, "jtt", out=tmp_path / "run", settings={"train.steps": 4, "method.first": "1", "upweight": "5"})
    assert again.path == run.path
    with pytest.raises(UserError, match="no method 'jtd'; did you mean 'jtt'"):
        package.train(source, "jtd", out=tmp_path / "x")


def test_nn_module_networks_serve_methods_that_read_features():
    method = make_method("lnl", {}, "tests.small_network", {}, toy(), 0).double()
    assert isinstance(method.model.output, nn.Linear)
    f, logits = method.model.eval().both(toy().inputs.x)
    torch.testing.assert_close(method.model.output(f), logits)


@pytest.mark.parametrize("conditional", [False, True])
def test_adversarial_step(conditional):
    method = make("adversarial", {"lambda_": "0.7", "hidden": "5", "conditional": str(conditional)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    told = F.one_hot(batch.y, 3).double() if conditional else torch.zeros(12, 0).double()
    method.train()
    guess = method.critics[0].guess
    task = F.cross_entropy(method.model(batch.x), batch.y)
    critic = F.cross_entropy(guess(torch.cat([features(method.model, batch.x), told], 1)), batch.bias[:, 0])
    down = torch.autograd.grad(task, list(method.model.parameters()), retain_graph=True)
    up = torch.autograd.grad(critic, list(method.model.parameters()), retain_graph=True, allow_unused=True)
    descend(critic, guess.parameters())
    with torch.no_grad():
        for parameter, a, b in zip(method.model.parameters(), down, up, strict=True):
            parameter -= 0.1 * (a - (0.7 * b if b is not None else 0))
    same(ours.model, method.model)
    for a, b in zip(ours.critics.parameters(), method.critics.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_adversarial_warm_up_moves_the_critic_and_leaves_the_network_to_the_task():
    method = make("adversarial", {"lambda_": "5", "hidden": "5", "warmup": "1"})
    plain, batch = make("erm"), batch_of(method)
    plain.model.load_state_dict(method.model.state_dict())
    before = copy.deepcopy(method.critics)
    sgd_step(method, batch)
    sgd_step(plain, batch_of(plain))
    same(method.model, plain.model)
    assert not torch.equal(method.critics[0].guess[0].weight, before[0].guess[0].weight)
    assert float(method.rows_seen) == 12


def test_adversarial_mask_starts_open_and_pays_for_what_it_removes():
    data, rows = images()
    method = make_method("adversarial", {"at": "image", "hidden": "8", "beta": "0.5"}, "mlp", {}, data, 0)
    x = data.inputs.x[rows].float() / 255
    method.eval()
    mask = method.mask(x)
    assert mask.shape == (40, 1, 28, 28)
    assert float(mask.detach().min()) > 0.85
    torch.testing.assert_close(method.predict(x), method.model(mask * x))
    batch = Batch(index=rows, x=x, y=data.y[rows], bias=data.bias[rows], group=data.group[rows])
    terms = method.loss(batch)
    torch.testing.assert_close(terms["removed"], 0.5 * (x - mask * x).abs().mean())
    with pytest.raises(UserError, match="needs images"):
        make("adversarial", {"at": "image"})
    with pytest.raises(UserError, match="no layer 'conv7'"):
        make("adversarial", {"at": "conv7"})
    with pytest.raises(UserError, match="must not be negative"):
        make("adversarial", {"lambda_": "-1"})


def test_several_labels_are_weighted_as_in_the_paper():
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(60, 4, generator=generator) < 0.3).long()
    data = DataSet(
        name="sets", inputs=Memory(torch.randn(60, 2, generator=generator).double()), y=y, classes=("a", "b", "c", "d"),
        split=torch.zeros(60, dtype=torch.long), bias=torch.randint(0, 2, (60, 1), generator=generator), bias_names=("s",),
        bias_values=(("0", "1"),),
    )  # fmt: skip
    method = make("adversarial", {"class_weights": "true", "hidden": "5"}, data=data)
    batch = Batch(index=torch.arange(60), x=data.inputs.x, y=y, bias=data.bias, group=data.group)
    found = method.loss(batch)["task"]
    z, total = method.model(data.inputs.x), 0.0
    for label in range(4):
        weight = float((60 - y[:, label].sum()) / y[:, label].sum())
        p = torch.sigmoid(z[:, label])
        total = total - weight * (y[:, label] * p.log() + (1 - y[:, label]) * (1 - p).log()).mean() / 4
    torch.testing.assert_close(found, total, rtol=1e-5, atol=1e-7)
    with pytest.raises(UserError, match="needs one class per row"):
        make("lff", data=data)


@pytest.mark.parametrize(
    "name", ["rebias", "rubi", "lnl", "grl", "blind_eye", "lff", "gce", "reweight", "group_dro", "adversarial", "gray", "hex"]
)
def test_the_weights_of_a_repair_reach_every_loss(name):
    settings = G if name in ("rebias", "rubi") else {}
    method = make(name, settings)
    batch = batch_of(method, rows=8)
    weighted = Batch(**batch.columns(), weight=torch.tensor([4.0, 4.0, 0, 0, 0, 0, 0, 0]).double())
    state = copy.deepcopy(method.state_dict())
    plain = method.loss(batch)
    method.load_state_dict(state)
    other = method.loss(weighted)
    assert all(float(plain[k].detach()) != float(other[k].detach()) for k in plain if "hsic" not in k)


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


def test_hex_step():
    method = make("hex", {"levels": "4", "width": "3"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    grey = batch.x - batch.x.amin(1, keepdim=True).clamp(max=0)
    q = torch.floor(grey / grey.amax(1, keepdim=True) * 3)
    d = torch.stack([-q[:, 0], q[:, 0] - q[:, 1]], 1)
    pairs = torch.einsum(
        "bkj,blj->bkl",
        (d[:, None] - method.lower[None, :, None]).clamp(0, 1),
        (q[:, None] - method.theta[None, :, None]).clamp(0, 1),
    )
    h, g = features(method.model, batch.x), F.relu(method.to_g(pairs.flatten(1) / 2))
    h, g = (z / z.square().mean(0).clamp(min=1e-12).sqrt() for z in (h, g))
    both = method.output(torch.cat([h, g], 1))
    alone = method.output(torch.cat([torch.zeros_like(h), g], 1))
    gram = alone.T @ alone
    ridged = gram + 1e-3 * torch.trace(gram) / 3 * torch.eye(3)
    left = both - alone @ torch.linalg.inv(ridged) @ alone.T @ both
    descend(F.cross_entropy(left, batch.y), [p for p in method.parameters() if p.requires_grad])
    for (k, a), b in zip(ours.named_parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9, msg=k)
