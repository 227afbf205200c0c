"""Readers of a part against scikit-learn's ridge regression; a planted part is found wherever it is, and none where none is."""

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import Ridge

from unskew.parts.picture_part import GRID, ridge_scores, standing_out
from unskew.stats.readers import class_balanced, spread_folds


def planted(top, left, n=2000, agree=0.9, seed=0):
    """Cells of which every quarter shows the class in its own way, and a mark of 6 x 6 cells, which agrees with it in most rows.

    The model that errs sees all of it with noise of its own: it errs on rows that the mark contradicts, and on hard ones.
    """
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    b = torch.where(torch.rand(n, generator=g) > agree, (y + 1) % 3, y)
    shown = F.one_hot(y, 3)[:, None] + 0.8 * torch.randn(n, 4, 3, generator=g)  # of a hard row a quarter looks like another class
    cells = 0.3 * torch.einsum("nqc,qchw->nqhw", shown, torch.randn(4, 3, GRID // 2, GRID // 2, generator=g))
    upper, lower = torch.cat([cells[:, 0], cells[:, 1]], 2), torch.cat([cells[:, 2], cells[:, 3]], 2)
    cells = torch.cat([upper, lower], 1) + torch.randn(n, GRID, GRID, generator=g)
    said = shown.mean(1) + 0.4 * torch.randn(n, 3, generator=g)
    if top is not None:
        cells[:, top : top + 6, left : left + 6] += torch.randn(3, 6, 6, generator=g)[b]
        said = said + 0.8 * F.one_hot(b, 3)
    return ((cells - cells.mean(0)) / cells.std(0))[:, None], y, said, b != y


@pytest.mark.parametrize(
    ("top", "left", "box"), [(0, 0, (0.0, 0.0, 0.5, 0.5)), (10, 9, (0.5, 0.5, 1.0, 1.0)), (9, 1, (0.0, 0.5, 0.5, 1.0))]
)
def test_a_planted_part_stands_out(top, left, box):
    cells, y, said, against = planted(top, left)
    wrong = said.argmax(1) != y
    assert int(wrong.sum()) > 50
    assert 0.2 < against[wrong].double().mean() < 0.9  # errors of both sorts
    assert standing_out(cells, y, said) == box


def test_no_part_stands_out_where_every_part_shows_the_class_alike():
    for seed in range(4):
        cells, y, said, _ = planted(None, None, seed=seed)
        assert int((said.argmax(1) != y).sum()) > 50
        assert standing_out(cells, y, said, seed=seed) is None


def test_few_errors_say_nothing():
    cells, y, said, _ = planted(0, 0)
    mended = (said.argmax(1) != y).nonzero().flatten()[40:]
    said[mended] = F.one_hot(y[mended], 3).float()
    assert standing_out(cells, y, said) is None


def test_scores_are_those_of_scikit_learn():
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(90, 7, generator=g), torch.arange(90) % 3
    x[:, 0] += y
    fold, weight = spread_folds(y, 5, 0), class_balanced(y)
    found = ridge_scores(x, y, fold, 3, decay=0.1)
    for k in range(5):
        out = fold != k
        # Its penalty is not divided by the weights' sum; the constant is free in both.
        reader = Ridge(alpha=0.1 * len(y)).fit(x[out].double(), torch.eye(3)[y[out]].double(), sample_weight=weight[out])
        torch.testing.assert_close(found[~out], torch.from_numpy(reader.predict(x[~out].double())), atol=1e-6, rtol=1e-6)


def test_readers_of_wide_windows_are_the_same_with_any_number_of_threads():
    """The general solver fails with several threads where the normal equations have some 500 columns."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(700, 576, generator=generator), torch.arange(700) % 5
    fold, before = torch.arange(700) // 5 % 5, torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = ridge_scores(x, y, fold, 5)
        torch.set_num_threads(2)
        torch.testing.assert_close(ridge_scores(x, y, fold, 5), alone)
    finally:
        torch.set_num_threads(before)
