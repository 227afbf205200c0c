"""Representation bias against scikit-learn, closed forms and identities; and what it refuses."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from sklearn.linear_model import LogisticRegression

from tests.support.rows import rows
from unskew.core.errors import UserError
from unskew.data import load
from unskew.measure import representation_bias
from unskew.measure.representation_bias import held_out_loss
from unskew.stats.readers import spread_folds


def test_held_out_risk_is_scikit_learns_fold_by_fold():
    x, y = rows(900, strength=0.7)
    e = representation_bias(x, y, permutations=0, bootstrap=0, decays=(1e-2,))
    z = ((x - x.mean(0)) / x.std(0)).double().numpy()
    fold = spread_folds(y, 5, 0)
    risks = []
    for k in range(5):
        train, test = (fold != k).numpy(), (fold == k).numpy()
        model = LogisticRegression(C=1 / (1e-2 * train.sum()), tol=1e-8, max_iter=5000).fit(z[train], y[train].numpy())
        risks.append(-model.predict_log_proba(z[test])[np.arange(test.sum()), y[test].numpy()])
    assert e.risk == pytest.approx(float(np.concatenate(risks).mean()), abs=2e-4)


@pytest.mark.parametrize(("bias", "shares"), [(0.0, "0.5,0.5"), (0.1, "0.7,0.2,0.1"), (0.4, "0.9,0.1"), (1.0, "0.6,0.4")])
def test_planted_bias_is_found(bias, shares):
    data = load(f"planted:bias={bias},shares={shares},rows=6000,seed=3")
    e = representation_bias(data.inputs.x, data.y)
    assert e.bias == pytest.approx(bias, abs=0.03)
    assert e.low - 1e-3 <= bias <= e.high + 1e-3
    assert e.above_chance == (bias > 0)


def test_imbalance_alone_is_no_bias():
    data = load("planted:bias=0,shares=0.95,0.05,rows=4000")
    e = representation_bias(data.inputs.x, data.y)
    assert not e.above_chance
    assert abs(e.chance) < 0.02


def test_identities_of_the_parts():
    x, y = rows(800, strength=0.6)
    e = representation_bias(x, y, permutations=0)
    p = y.bincount().double() / len(y)
    assert e.entropy == pytest.approx(float(-(p * p.log()).sum()))
    assert e.bias == pytest.approx(1 - e.risk / e.entropy)
    assert float(e.gain.mean()) / e.entropy == pytest.approx(e.bias)
    weighed = sum(float(p[c] * -p[c].log()) * e.per_class[c] for c in range(3)) / e.entropy
    assert weighed == pytest.approx(e.bias)
    assert e.low < e.bias < e.high


def test_integer_weights_are_repeated_rows():
    # Folds are fixed by hand so that copies of a row stay together: then a weight of 2 must equal two copies.
    x, y = rows(200)
    x = torch.cat([torch.ones(len(x), 1), x], 1).double()
    times = torch.randint(1, 4, (200,), generator=torch.Generator().manual_seed(1))
    fold = spread_folds(y, 2, 0)
    weighted = held_out_loss(x, y[:, None], times[:, None].double(), fold, 2, (1e-2,), 3)[0][:, 0, 0]
    again = torch.repeat_interleave(torch.arange(200), times)
    copied = held_out_loss(x[again], y[again][:, None], torch.ones(len(again), 1).double(), fold[again], 2, (1e-2,), 3)[0][
        :, 0, 0
    ]
    torch.testing.assert_close(copied, weighted[again], atol=3e-3, rtol=0)  # both are fitted to a relative 1e-6


def test_the_interval_of_a_large_set_is_what_the_bootstrap_tends_to(monkeypatch):
    x, y = rows(3000, strength=0.6)
    weights = torch.rand(3000, generator=torch.Generator().manual_seed(2)) + 0.5
    drawn = representation_bias(x, y, weights, permutations=0, bootstrap=4000)
    monkeypatch.setitem(representation_bias.__globals__, "BOOTSTRAP_ROWS", 2000)
    normal = representation_bias(x, y, weights, permutations=0)
    half = (drawn.high - drawn.low) / 2
    assert normal.low == pytest.approx(drawn.low, abs=0.08 * half)
    assert normal.high == pytest.approx(drawn.high, abs=0.08 * half)


def test_weights_that_balance_the_cells_remove_the_bias():
    data = load("planted:bias=0.4,rows=4000,extra=0")
    z, y = data.bias[:, 0], data.y
    counts = torch.zeros(2, 2).index_put_((y, z), torch.ones(len(y)), accumulate=True)
    e = representation_bias(data.inputs.x, y, weights=1 / counts[y, z])
    assert abs(e.bias) < 0.01
    assert not e.above_chance


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_invariances(seed):
    x, y = rows(150, width=3, strength=0.8, seed=seed)
    base = representation_bias(x, y, permutations=0, bootstrap=0).bias
    assert representation_bias(x * 100 - 7, y, permutations=0, bootstrap=0).bias == pytest.approx(base, abs=1e-3)
    assert representation_bias(x, 2 - y, permutations=0, bootstrap=0).bias == pytest.approx(
        base, abs=0.12
    )  # other folds, same law
    assert base < 1


def test_constant_features_carry_nothing_and_one_among_others_is_left_out():
    x, y = rows(100)
    e = representation_bias(torch.ones(100, 2), y)
    assert (e.bias, e.low, e.high, e.above_chance) == (0, 0, 0, False)
    assert e.note == "2 of 2 features are constant"
    with_one = representation_bias(torch.cat([x, torch.ones(100, 1)], 1), y, permutations=0)
    assert with_one.bias == pytest.approx(representation_bias(x, y, permutations=0).bias, abs=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.tensor([[0.0], [math.nan]] * 10), torch.tensor([0, 1] * 10), "NaN or infinity in 10 rows, first in row 1"),
        (torch.tensor([[0.0], [math.inf]] * 10), torch.tensor([0, 1] * 10), "NaN or infinity"),
        (torch.rand(20, 2), torch.zeros(20), "only one class"),
        (torch.rand(3, 2), torch.tensor([0, 1, 2]), "class 0 has 1 rows, fewer than the 5 folds"),
        (torch.rand(20, 2), torch.tensor([0, 1] * 9), "20 rows of features but 18 labels"),
    ],
)
def test_what_cannot_be_measured_is_said(x, y, words):
    with pytest.raises(UserError, match=words):
        representation_bias(x, y)


@pytest.mark.parametrize(
    "change", [lambda x: x * 1e-8, lambda x: x * 100 + 1.7e9, lambda x: x * 1e200, lambda x: (x * 1000).long()]
)
def test_scale_and_offset_do_not_hide_anything(change):
    x, y = rows(400, strength=0.8)
    expected = representation_bias(x.double(), y, permutations=0, bootstrap=0).bias
    assert representation_bias(change(x.double()), y, permutations=0, bootstrap=0).bias == pytest.approx(expected, abs=0.01)


def test_rows_of_weight_zero_are_not_there():
    x, y = rows(400)
    weights = torch.ones(400)
    weights[::4] = 0
    e = representation_bias(x, y, weights=weights, permutations=0)
    there = weights > 0
    assert e.bias == pytest.approx(representation_bias(x[there], y[there], permutations=0).bias, abs=1e-9)
    assert e.gain[~there].isnan().all()
    with pytest.raises(UserError, match="only one class"):
        representation_bias(x, (y > 0).long(), weights=(y == 0).float())


def test_no_rows_are_told():
    with pytest.raises(UserError):
        representation_bias(np.zeros((0, 3)), [])
