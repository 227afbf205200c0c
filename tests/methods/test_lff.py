"""Learning from failure: its steps by hand with smoothed losses, and the maxima of the classes."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import descend, make, sgd_step, toy
from unskew.losses import relative_difficulty
from unskew.records import Batch


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
