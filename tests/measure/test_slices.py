import math

import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from sklearn.mixture import GaussianMixture

from unskew.core.errors import UserError
from unskew.measure.slices import PRIOR, fit_mixture, slices, temperature


def planted(seed=0, classes=3, aligned=90, conflicting=12):
    """Rows whose first numbers show a shortcut; a probe that reads only that. (features, logits, y, conflicts)"""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(classes).repeat_interleave(aligned + conflicting)
    against = torch.arange(len(y)) % (aligned + conflicting) >= aligned
    shortcut = torch.where(against, (y + 1) % classes, y)
    x = torch.cat([4 * F.one_hot(shortcut, classes), F.one_hot(y, classes)], 1).float()
    x += torch.randn(x.shape, generator=g)
    logits = 5 * F.one_hot(shortcut, classes).double() + 0.5 * torch.randn(len(y), classes, generator=g)
    return x, logits, y, against, shortcut


def test_planted_conflicts_are_found():
    x, logits, y, against, shortcut = planted()
    found = slices(x, logits, y)
    inside = torch.tensor(found.conflicting)[found.slice]
    assert (inside == against).double().mean() > 0.99
    assert bool(against[found.score.argsort(descending=True)[:30]].all())
    assert (found.seems == shortcut).double().mean() > 0.99
    assert [found.said[s] for s, c in enumerate(found.conflicting) if c] == [1, 2, 0]


def test_a_probe_that_is_right_leaves_only_aligned_slices():
    x, _, y, *_ = planted()
    found = slices(x, 6 * F.one_hot(y, 3).double(), y)
    assert not any(found.conflicting)
    assert found.seems.tolist() == y.tolist()


def test_the_order_of_rows_does_not_matter():
    x, logits, y, *_ = planted()
    turn = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    before, after = slices(x, logits, y), slices(x[turn], logits[turn], y[turn])
    inside = torch.tensor(before.conflicting)[before.slice][turn]
    assert inside.tolist() == torch.tensor(after.conflicting)[after.slice].tolist()


def test_without_an_opinion_the_mixture_is_scikit_learns():
    # A constant opinion says nothing, and with no prior the rest is a diagonal Gaussian mixture from the same start.
    g = torch.Generator().manual_seed(0)
    z = torch.cat([torch.randn(200, 3, generator=g), torch.randn(100, 3, generator=g) + 4]).double()
    start = (torch.arange(300) >= 200).long()
    ours = fit_mixture(z, torch.ones(300, 1).double(), start)
    means = torch.stack([z[start == k].mean(0) for k in (0, 1)]).numpy()
    theirs = GaussianMixture(2, covariance_type="diag", means_init=means, tol=1e-8, max_iter=500).fit(z.numpy())
    assert ours.membership.argmax(1).tolist() == theirs.predict(z.numpy()).tolist()
    # Five rows of the whole class's variance, which is larger, cost a little likelihood.
    assert ours.likelihood == pytest.approx(theirs.score(z.numpy()) * 300, rel=0.02)
    assert PRIOR == 5


def test_one_step_by_hand():
    # Two rows in each of two components with equal features: only the opinion tells them apart.
    z, p = torch.zeros(4, 1).double(), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).double()
    got = fit_mixture(z, p, torch.tensor([0, 0, 1, 1]), weight=2.0, least=2, steps=1).membership
    # q = (2 + 1/2) / 3 = 5/6 and 1/6; a row of the first opinion: (5/6)^2 against (1/6)^2, that is 25 to 1.
    assert got[:, 0].tolist() == pytest.approx([25 / 26, 25 / 26, 1 / 26, 1 / 26])


def test_the_temperature_minimises_the_loss():
    g = torch.Generator().manual_seed(3)
    logits, y = torch.randn(200, 4, generator=g).double() * 3, torch.randint(0, 4, (200,), generator=g)
    logits[torch.arange(200), y] += 2

    def loss(log_t):
        return float(F.cross_entropy(logits / math.exp(log_t), y))

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x
    assert math.log(temperature(logits, y)) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("bad", [{"weight": 0.0}, {"axes": 0}, {"least": 1}])
def test_bad_settings(bad):
    x, logits, y, *_ = planted()
    with pytest.raises(UserError, match="slices"):
        slices(x, logits, y, **bad)
    with pytest.raises(UserError, match="must be as many"):
        slices(x[1:], logits, y)
