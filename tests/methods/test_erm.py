"""Empirical risk minimisation: a whole step against plain PyTorch, rows with weights, and weights of several labels."""

import copy

import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, make, same, sgd_step, toy
from unskew.methods.erm import ERM, ERMConfig
from unskew.records import Batch, Facts


def test_erm_step():
    method = make("erm")
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    descend(F.cross_entropy(method.model(batch.x), batch.y), method.model.parameters())
    same(ours, method)


def test_a_row_of_weight_two_counts_as_two_rows():
    method = make("erm")
    batch = batch_of(method, rows=6)
    weight = torch.tensor([2.0, 1, 0, 1, 2, 0]).double()
    twice = torch.tensor([0, 0, 1, 3, 4, 4])
    found = method.loss(Batch(**batch.columns(), weight=weight))["ce"]
    torch.testing.assert_close(found, F.cross_entropy(method.model(batch.x[twice]), batch.y[twice]))


def test_class_weights_count_both_terms_of_a_label():
    y = torch.tensor([[1.0, 0], [0, 0], [0, 1], [0, 1]])
    facts = Facts(class_counts=y.sum(0).long(), rows=4, size=4, shape=(3,), multi_label=True)
    torch.manual_seed(0)
    method = ERM(ERMConfig(class_weights=True), facts, lambda: torch.nn.Linear(3, 2))
    x = torch.randn(4, 3)
    p = torch.sigmoid(method.model(x))
    by_label = -(y * p.log() + (1 - y) * (1 - p).log()).mean(0)
    # The first label is on one row of four, the second on two.
    expected = (3 / 1 * by_label[0] + 2 / 2 * by_label[1]) / 2
    torch.testing.assert_close(method.loss(Batch(index=torch.arange(4), x=x, y=y))["ce"], expected)


def test_class_weights_of_classes_are_rows_without_over_rows_with():
    data = toy()
    method = make("erm", {"class_weights": "true"}, data=data)
    batch = batch_of(method, data=data)
    weight = torch.tensor([float((data.y != c).sum() / (data.y == c).sum()) for c in range(3)]).double()
    expected = (weight[batch.y] * F.cross_entropy(method.model(batch.x), batch.y, reduction="none")).mean()
    torch.testing.assert_close(method.loss(batch)["ce"], expected, rtol=1e-6, atol=1e-8)
