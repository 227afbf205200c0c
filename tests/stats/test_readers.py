"""Readers judged on rows they were not fitted on: against scikit-learn, and on labels that cannot be known."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from unskew.stats.readers import biased_logits, class_balanced, held_out_logits, spread_folds, with_constant


def test_held_out_logits_agree_with_scikit_learn():
    g = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 2
    z = torch.randn(120, 4, generator=g) + y[:, None]
    x, decay = with_constant(z).double(), 0.1
    ours = held_out_logits(x, y, 2, (decay,), weight=torch.ones(120), folds=3)[0]
    fold = spread_folds(y, 3, 0)
    for k in range(3):
        inside, outside = (fold != k).numpy(), (fold == k).numpy()
        # Two columns of weights share the penalty, so that one binary column has half of it: C = 2 / (decay n).
        reference = LogisticRegression(C=2 / (decay * inside.sum()), tol=1e-10, max_iter=1000)
        reference.fit(x[inside, 1:].numpy(), y[inside].numpy())
        margin = (ours[outside, 1] - ours[outside, 0]).numpy()
        np.testing.assert_allclose(margin, reference.decision_function(x[outside, 1:].numpy()), atol=2e-2)


def test_random_labels_are_not_read():
    g = torch.Generator().manual_seed(1)
    y = torch.randint(0, 2, (600,), generator=g)
    logits = held_out_logits(with_constant(torch.randn(600, 20, generator=g)), y, 2, (0.1,), weight=torch.ones(600))[0]
    assert 0.4 < float((logits.argmax(1) == y).float().mean()) < 0.6


def test_gce_commits_to_what_most_rows_show():
    # One column shows the majority's rule, another the truth of all rows, more faintly.
    g = torch.Generator().manual_seed(2)
    y = torch.arange(2000) % 2
    bias = torch.where(torch.rand(2000, generator=g) < 0.9, y, 1 - y)
    z = torch.stack([2.0 * bias + 0.5 * torch.randn(2000, generator=g), y + 0.9 * torch.randn(2000, generator=g)], 1)
    plain = held_out_logits(with_constant(z), y, 2, (1e-3,), weight=class_balanced(y))[0].argmax(1)
    biased = biased_logits(with_constant(z), y, 2, decay=1e-3, q=2.0, rounds=5).argmax(1)
    assert float((biased == bias).float().mean()) > float((plain == bias).float().mean())


def test_every_class_weighs_the_same():
    w = class_balanced(torch.tensor([0, 0, 0, 1]))
    assert w.tolist() == [2 / 3, 2 / 3, 2 / 3, 2.0]
