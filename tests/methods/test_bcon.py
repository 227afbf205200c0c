"""bcon: the contrastive loss row by row, the prior by counting, a whole step, and opinions instead of bias labels."""

import copy
import math

import polars as pl
import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, sgd_step, toy
from unskew.core.errors import UserError
from unskew.losses import bias_contrastive
from unskew.methods.bcon import BConConfig
from unskew.records import Table


def by_hand(u, y, b, tau, same):
    rows = []
    for i in range(len(u)):
        others = [k for k in range(len(u)) if k != i and b[k] >= 0 and b[i] >= 0]
        positive = [k for k in others if y[k] == y[i] and b[k] != b[i]]
        among = (
            [k for k in others if k in positive or (y[k] != y[i] and b[k] == b[i])]
            if same
            else [k for k in range(len(u)) if k != i]
        )
        if not positive:
            rows.append(0.0)
            continue
        total = sum(math.exp(float(u[i] @ u[k]) / tau) for k in among)
        rows.append(-sum(math.log(math.exp(float(u[i] @ u[j]) / tau) / total) for j in positive) / len(positive))
    return rows


@pytest.mark.parametrize("same", [True, False])
def test_the_contrastive_loss_row_by_row(same):
    g = torch.Generator().manual_seed(0)
    u = F.normalize(torch.randn(14, 4, generator=g, dtype=torch.float64), dim=1)
    y, b = torch.randint(0, 3, (14,), generator=g), torch.randint(-1, 3, (14,), generator=g)
    assert bias_contrastive(u, y, b, 0.3, same=same).tolist() == pytest.approx(by_hand(u, y, b, 0.3, same), rel=1e-9)
    lonely = bias_contrastive(u.requires_grad_(), y, torch.zeros(14).long(), 0.3, same=same)
    assert lonely.abs().max() == 0
    (gradient,) = torch.autograd.grad(lonely.sum(), u)
    assert gradient.isfinite().all()


def test_a_step_by_hand():
    method = make("bcon", {"alpha": "0.5", "temperature": "0.2", "projection": "4"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    data = toy()
    counts = torch.zeros(3, 3)
    for label, bias in zip(data.y.tolist(), data.bias[:, 0].tolist(), strict=True):
        counts[bias, label] += 1
    prior = (counts / counts.sum(1, keepdim=True) + 1e-9).log().double()
    h = method.model.blocks(batch.x)
    ce = F.cross_entropy(method.model.head(h) + prior[batch.bias[:, 0]], batch.y)
    u = method.project(h)
    u = u / u.norm(dim=1, keepdim=True)
    contrast = bias_contrastive(u, batch.y, batch.bias[:, 0], 0.2).mean()
    descend(ce + 0.5 * contrast, method.parameters())
    for a, b in zip(ours.parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)  # the prior is kept in single precision
    torch.testing.assert_close(method.predict(batch.x), method.model(batch.x))


def test_opinions_stand_in_for_bias_labels(tmp_path):
    path = tmp_path / "opinion.parquet"
    data = toy()
    Table(pl.DataFrame({"index": list(range(64)), "opinion": data.bias[:, 0].numpy()}), {"name": "x"}).save(path)
    told = make("bcon", {"balanced": "false"}).train()
    guessed = make("bcon", {"balanced": "false", "opinion": str(path)}).train()
    assert guessed.sees == frozenset()
    guessed.load_state_dict({**told.state_dict(), "said": guessed.said, "prior": guessed.prior})
    assert batch_of(guessed).bias is None
    torch.testing.assert_close(guessed.loss(batch_of(guessed)), told.loss(batch_of(told)))
    Table(pl.DataFrame({"index": [99], "opinion": [0]}), {"name": "x"}).save(path)
    with pytest.raises(UserError, match="has a row for sample 99"):
        make("bcon", {"opinion": str(path)})
    with pytest.raises(UserError, match="temperature must be above 0"):
        BConConfig(temperature=0)
