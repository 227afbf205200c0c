"""Macro F1 and average precision against scikit-learn, the rows themselves and weighted; intervals against repeated samples."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score

import unskew.measure.label_sets as module
from unskew.core.errors import UserError
from unskew.core.matrix import spilled
from unskew.measure.label_sets import by_bias, label_sets, weighted_average_precision, weighted_f1
from unskew.stats.f1 import macro_f1


def sets(n=300, labels=5, seed=0, ties=False):
    g = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, labels, generator=g) < 0.3).float()
    logits = 1.5 * (y - 0.4) + torch.randn(n, labels, generator=g)
    return ((logits * 2).round() / 2 if ties else logits), y


@pytest.mark.parametrize("ties", [False, True])
def test_equal_to_scikit_learn(ties):
    logits, y = sets(ties=ties)
    found = label_sets(logits, y)
    assert found.f1 == pytest.approx(f1_score(y, logits > 0, average="macro"))
    assert found.average_precision == pytest.approx(average_precision_score(y, logits, average="macro"))
    for k, row in enumerate(found.per_label):
        assert row["f1"] == pytest.approx(f1_score(y[:, k], logits[:, k] > 0))
        assert row["average_precision"] == pytest.approx(average_precision_score(y[:, k], logits[:, k]))


@pytest.mark.parametrize("ties", [False, True])
def test_rows_that_count_several_times_equal_scikit_learn_with_weights(ties):
    logits, y = sets(ties=ties)
    counts = torch.randint(0, 4, (3, len(y)), generator=torch.Generator().manual_seed(1)).double()
    f1 = weighted_f1((logits > 0).double(), y.double(), counts)
    for b, weight in enumerate(counts.numpy()):
        for k in range(y.shape[1]):
            assert float(f1[b, k]) == pytest.approx(f1_score(y[:, k], logits[:, k] > 0, sample_weight=weight))
            ap = weighted_average_precision(logits[:, k].double(), y[:, k].double(), counts)[b]
            assert float(ap) == pytest.approx(average_precision_score(y[:, k], logits[:, k], sample_weight=weight))


def test_intervals_have_the_width_of_repeated_samples():
    found = label_sets(*sets(n=400))
    repeated = [label_sets(*sets(n=400, seed=s), draws=0) for s in range(200)]
    for name in ("f1", "average_precision"):
        low, high = getattr(found, f"{name}_interval")
        spread = np.std([getattr(r, name) for r in repeated])
        assert (high - low) / (2 * 1.96) == pytest.approx(spread, rel=0.25)
        assert low < getattr(found, name) < high


def test_labels_that_none_has_are_left_out_and_the_figure_is_that_of_leakage():
    logits, y = sets()
    y[:, 0], y[:, 1] = 0, 1
    found = label_sets(logits, y)
    assert found.judged == 4
    assert math.isnan(found.per_label[0]["f1"])
    assert found.per_label[1]["n"] == len(y)
    assert found.f1 == pytest.approx(f1_score(y[:, 1:], logits[:, 1:] > 0, average="macro"))
    assert found.f1 == pytest.approx(macro_f1((logits > 0).float(), y))
    assert math.isnan(label_sets(logits, torch.zeros_like(y)).f1)
    assert math.isnan(label_sets(logits[:0], y[:0]).f1)


def test_a_perfect_model_of_rare_labels_is_certain_to_be_perfect():
    y = torch.eye(20).repeat(5, 1)[:100]
    y[20:] = 0  # one row per label
    found = label_sets(8 * y - 4, y)
    assert found.f1_interval == (1.0, 1.0)
    assert found.average_precision_interval == (1.0, 1.0)


def test_by_bias_value_equals_the_same_on_the_rows_of_the_value():
    logits, y = sets()
    bias = torch.randint(-1, 3, (len(y),), generator=torch.Generator().manual_seed(2))
    table = by_bias(logits, y, bias, 4)
    for v in range(3):
        rows = bias == v
        for k in range(y.shape[1]):
            cell = table[k][v]
            assert cell["f1"] == pytest.approx(f1_score(y[rows, k], logits[rows, k] > 0))
            assert cell["n"] == y[rows, k].sum()
            said = logits[rows, k] > 0
            assert cell["false_alarms"] == pytest.approx(float(said[y[rows, k] == 0].float().mean()))
            assert cell["recall"] == pytest.approx(float(said[y[rows, k] == 1].float().mean()))
    assert math.isnan(table[0][3]["f1"])  # no rows
    nobody = by_bias(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [0.0]]), torch.tensor([0, 1]), 2)
    assert (nobody[0][0]["f1"], nobody[0][1]["false_alarms"]) == (1.0, 1.0)
    assert math.isnan(nobody[0][1]["f1"])  # nobody of this value has it: nothing to find
    assert table[0][3]["rows"] == 0


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="same shape"):
        label_sets(torch.zeros(3, 2), torch.zeros(3))


def test_draws_in_blocks_are_the_same_draws(monkeypatch):
    g = torch.Generator().manual_seed(1)
    logits, y = torch.randn(300, 3, generator=g), (torch.rand(300, 3, generator=g) < 0.3).float()
    whole = label_sets(logits, y, seed=3)
    monkeypatch.setattr("unskew.measure.label_sets.HELD", 300 * 7)  # 401 rows of counts, seven at a time
    assert label_sets(logits, y, seed=3) == whole


@pytest.mark.parametrize("ties", [False, True])
def test_by_counts_figures_are_scikit_learns_and_intervals_those_of_drawn_rows(ties, monkeypatch, tmp_path):
    logits, y = sets(n=3000, ties=ties)
    logits[:, 1] -= 2  # most rows of this label are predicted without it
    drawn = label_sets(logits, y)
    monkeypatch.setattr(module, "COUNTED", 1000)
    for given in (logits, spilled(logits, tmp_path)):
        counted = label_sets(given, y)
        assert counted.f1 == pytest.approx(f1_score(y, logits > 0, average="macro"))
        assert counted.average_precision == pytest.approx(average_precision_score(y, logits, average="macro"))
        for k, row in enumerate(counted.per_label):
            assert row["n"] == float(y[:, k].sum())
            assert row["f1"] == pytest.approx(f1_score(y[:, k], logits[:, k] > 0))
        for name in ("f1_interval", "average_precision_interval"):
            (low, high), (a, b) = getattr(drawn, name), getattr(counted, name)
            # A 2.5 % quantile of 400 normal draws is known to 0.134 standard deviations; here the difference of two, threefold.
            assert abs(a - low) < 3 * 1.42 * 0.134 * (high - low) / 3.92
            assert abs(b - high) < 3 * 1.42 * 0.134 * (high - low) / 3.92


def test_a_label_that_a_draw_lacks_is_left_out_by_counts_too(monkeypatch):
    logits, y = sets(n=2000, labels=2)
    y[:, 1] = 0
    y[0, 1] = 1  # in 37 % of the draws no row has it
    monkeypatch.setattr(module, "COUNTED", 1000)
    found = label_sets(logits, y)
    assert found.per_label[1]["average_precision"] == pytest.approx(average_precision_score(y[:, 1], logits[:, 1]))
    # Where the draw lacks it, the mean is that of the other label: half of a mean of both, where the second is nearly 0, at most.
    alone = label_sets(logits[:, :1], y[:, :1])
    assert found.f1_interval[1] > alone.f1_interval[0] > 1.5 * found.f1
