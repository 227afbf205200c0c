"""ReBias: both orders of a whole step by hand, the width of its kernel, several biased networks, wrong settings."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import G, batch_of, descend, features, make, same, sgd_step, toy
from unskew.core.errors import UserError
from unskew.records import Batch


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


def test_f_runs_once_a_step_and_its_statistics_move_once():
    data = toy()
    counts = {}
    for order in ("g-first", "f-first"):
        method = make("rebias", {**G, "order": order, "g_updates": "2"})
        calls = []
        method.model.head.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        sgd_step(method, batch_of(method, data=data))
        counts[order] = len(calls)
        assert method.pass_of_f is None
    assert counts == {"g-first": 1, "f-first": 3}


def test_parts_of_a_batch_have_passes_of_their_own():
    method = make("rebias", G)
    batch = batch_of(method)
    half = Batch(**{name: column[:6] for name, column in batch.columns().items()})

    def update(given, part="", optimizers=None):
        terms = [method(piece.columns(), part) for piece in (half, half)]
        sum(sum(t.values()) for t in terms).backward()
        return terms[0]

    terms = method.step(batch, update)
    alone = make("rebias", G).loss_f(half)
    torch.testing.assert_close(terms["hsic"], alone["hsic"])


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


def test_bad_settings_say_what_is_wrong():
    with pytest.raises(UserError, match=r"no default biased network.*g.model=mlp"):
        make("rebias")
    with pytest.raises(UserError, match=r"g.kernel needs g.model"):
        make("rebias", {"g.kernel": "1"})
    with pytest.raises(UserError, match="no model 'bagnat'"):
        make("rebias", {"g.model": "bagnat"})
    method = make("rebias", G)
    few = batch_of(method, rows=3)
    with pytest.raises(UserError, match="at least 4 rows"):
        method.loss(few)


def test_normalised_hsic_is_one_for_a_network_and_itself_and_ignores_the_scale_of_kernels():
    method = make("rebias", {**G, "normalise": "true", "sigma": "batch"})
    z = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).double()
    assert float(method._dependence(z, [z])) == pytest.approx(1)
    assert float(method._dependence(z, [100 * z])) == pytest.approx(1, abs=1e-4)  # the width follows the features
    v = torch.randn(20, 3, generator=torch.Generator().manual_seed(1)).double()
    pairs = [(a - b).square().sum().sqrt() for i, a in enumerate(z) for b in z[:i]]
    width_z = float(torch.stack(pairs).median())
    width_v = float(torch.stack([(a - b).square().sum().sqrt() for i, a in enumerate(v) for b in v[:i]]).median())
    expected = hsic_by_loops(z, v, width_z, width_v) / math.sqrt(
        hsic_by_loops(z, z, width_z, width_z) * hsic_by_loops(v, v, width_v, width_v)
    )
    assert float(method._dependence(z, [v])) == pytest.approx(expected, rel=0.05)  # the median of an even number of pairs


def test_the_log_has_the_kernel_of_a_typical_pair_and_the_ratio_of_gradients():
    method = make("rebias", {**G, "lambda_f": "3"})
    batch = batch_of(method)
    assert set(sgd_step(method, batch)) == {"ce", "hsic", "g_ce", "g_hsic"}
    method.age.fill_(49)
    method.train()
    z = features(method.model, batch.x).detach().requires_grad_()
    terms = method.loss_f(batch)
    rows = z.detach()
    distances = [float((a - b).square().sum().sqrt()) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
    typical = sorted(distances)[(len(distances) - 1) // 2]
    assert float(method.watched["kernel"]) == pytest.approx(math.exp(-(typical**2) / 2), rel=1e-6)
    task = torch.autograd.grad(F.cross_entropy(method.model.head(z), batch.y), z)[0].norm()
    penalty = torch.autograd.grad(3 * hsic(z, features(method.g[0], batch.x).detach()), z)[0].norm()
    assert float(method.watched["gradient_ratio"]) == pytest.approx(float(penalty / task), rel=1e-6)
    assert set(terms) == {"ce", "hsic"}  # neither is minimised
