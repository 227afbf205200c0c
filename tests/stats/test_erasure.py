"""Concept erasure: the guarantee, the closed form by another route, what is kept, and what is refused."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from unskew.core.errors import UserError
from unskew.stats.erasure import leace, splince


@pytest.fixture(scope="module")
def rows():
    g = torch.Generator().manual_seed(0)
    z = torch.randint(0, 3, (400,), generator=g)
    y = torch.where(torch.rand(400, generator=g) < 0.6, z, torch.randint(0, 3, (400,), generator=g))
    mix = torch.randn(6, 10, generator=g, dtype=torch.float64)
    signal = torch.cat([torch.eye(3).double()[z], torch.eye(3).double()[y]], 1)
    return signal @ mix + 0.5 * torch.randn(400, 10, generator=g, dtype=torch.float64), z, y


def covariance(x, codes):
    columns = np.eye(3)[codes.numpy()]
    return np.cov(x.numpy().T, columns.T, bias=True)[:10, 10:]


def test_no_linear_reader_beats_a_constant(rows):
    x, z, y = rows
    shares = z.bincount().double() / len(z)
    entropy = -float((shares * shares.log()).sum())
    for eraser in (leace(x, z), splince(x, z, y)):
        erased = eraser(x).numpy()
        reader = LogisticRegression(C=1e6, max_iter=5000).fit(erased, z.numpy())
        assert log_loss(z.numpy(), reader.predict_proba(erased)) == pytest.approx(entropy, abs=1e-6)
    before = LogisticRegression(C=1e6, max_iter=5000).fit(x.numpy(), z.numpy())
    assert log_loss(z.numpy(), before.predict_proba(x.numpy())) < 0.5 * entropy


def test_leace_by_its_form_without_square_roots(rows):
    # P = I - S (S' C^-1 S)^+ S' C^-1 with C the covariance of x and S that of x and z.
    x, z, _ = rows
    centred = x.numpy() - x.numpy().mean(0)
    inverse, s = np.linalg.inv(centred.T @ centred / len(x)), covariance(x, z)
    p = np.eye(10) - s @ np.linalg.pinv(s.T @ inverse @ s, rcond=1e-10) @ s.T @ inverse
    np.testing.assert_allclose(leace(x, z)(x).numpy(), centred @ p.T + x.numpy().mean(0), atol=1e-9)
    assert leace(x, z).removed == 2


def test_leace_moves_the_features_less_than_other_projections_that_erase(rows):
    x, z, y = rows
    q, _ = np.linalg.qr(covariance(x, z)[:, :2])
    plain = x - (x - x.mean(0)) @ torch.from_numpy(q @ q.T)
    assert np.abs(covariance(plain, z)).max() < 1e-10
    moved = [float((e - x).square().sum()) for e in (leace(x, z)(x), plain, splince(x, z, y)(x))]
    assert moved[0] < min(moved[1:])


def test_splince_keeps_the_covariance_with_the_task_and_leace_does_not(rows):
    x, z, y = rows
    eraser = splince(x, z, y)
    assert eraser.kept == 2
    np.testing.assert_allclose(covariance(eraser(x), y), covariance(x, y), atol=1e-10)
    np.testing.assert_allclose(covariance(eraser(x), z), 0, atol=1e-10)
    assert np.abs(covariance(leace(x, z)(x), y) - covariance(x, y)).max() > 0.01


def test_what_task_and_concept_share_is_erased(rows):
    x, z, _ = rows
    same = splince(x, z, z)
    assert same.kept == 0
    torch.testing.assert_close(same(x), leace(x, z)(x), rtol=0, atol=1e-8)


def test_constant_and_repeated_columns_change_nothing(rows):
    x, z, _ = rows
    wide = torch.cat([x, x[:, :2], torch.ones(len(x), 1)], 1)
    erased = leace(wide, z)(wide)
    torch.testing.assert_close(erased[:, 10:12], erased[:, :2])
    torch.testing.assert_close(erased[:, :10], leace(x, z)(x), rtol=0, atol=1e-6)


def test_refusals(rows):
    x, z, _ = rows
    with pytest.raises(UserError, match="400 rows of features but 3 of the concept"):
        leace(x, z[:3])
    with pytest.raises(UserError, match="NaN"):
        leace(torch.full_like(x, torch.nan), z)
    with pytest.raises(UserError, match="at least two rows"):
        leace(x[:1], z[:1])
