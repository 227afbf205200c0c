import numpy as np
import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure.label_errors import label_errors


def _noisy():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 4, 120)
    p = rng.dirichlet(np.ones(4) * 0.6, 120)
    p = 0.5 * p + 0.5 * np.eye(4)[np.where(rng.random(120) < 0.8, y, rng.integers(0, 4, 120))]
    return p, y


def test_the_rows_and_their_order_are_those_of_cleanlab():
    # find_label_issues(y, p, filter_by="confident_learning", return_indices_ranked_by="self_confidence") of cleanlab 2.9.0.
    recorded = [42, 93, 25, 115, 49, 11, 39, 94, 57, 50, 62, 69, 18, 74, 78, 70, 32, 101, 54, 88]
    p, y = _noisy()
    assert label_errors(torch.from_numpy(p), torch.from_numpy(y)).order.tolist() == recorded


def test_the_installed_cleanlab_agrees():
    filters = pytest.importorskip("cleanlab.filter", reason="cleanlab is not a dependency")
    p, y = _noisy()
    theirs = filters.find_label_issues(y, p, filter_by="confident_learning", n_jobs=1)
    assert label_errors(torch.from_numpy(p), torch.from_numpy(y)).wrong.tolist() == theirs.tolist()


def test_by_hand():
    p = torch.tensor([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.1, 0.9], [0.45, 0.55]])
    found = label_errors(p, torch.tensor([0, 0, 0, 1, 1]))
    # t_0 = (0.6 + 0.5 + 0.2) / 3 = 0.4333, t_1 = (0.9 + 0.55) / 2 = 0.725: row 2 reaches t_1 and has label 0. Row 4 reaches t_0
    # alone, but its largest probability is that of its own label.
    assert found.thresholds.tolist() == pytest.approx([1.3 / 3, 0.725], abs=1e-6)
    assert found.wrong.tolist() == [False, False, True, False, False]
    assert found.likely.tolist() == [0, 0, 1, 1, 1]
    assert found.confidence[2] == pytest.approx(0.2)


def test_a_third_class_below_its_threshold_does_not_win():
    # t = (0.3, 0.3, 0.9): the last row reaches the first two, though the third class is the most probable.
    p = torch.tensor([[0.3, 0.3, 0.4], [0.3, 0.3, 0.4], [0.05, 0.05, 0.9], [0.3, 0.31, 0.39]])
    assert label_errors(p, torch.tensor([0, 1, 2, 0])).likely.tolist()[3] == 1


def test_a_class_without_rows_is_never_likely():
    p = torch.tensor([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7]])
    assert label_errors(p, torch.tensor([0, 1])).likely.max() < 2


def test_shapes_that_do_not_fit():
    with pytest.raises(UserError, match="3 labels"):
        label_errors(torch.rand(2, 2), torch.tensor([0, 1, 1]))
