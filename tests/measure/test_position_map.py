"""The map against scikit-learn's ridge readers, tile by tile, and boxes by hand."""

import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from unskew.core.errors import UserError
from unskew.measure import box_of, place_of, position_map
from unskew.stats.readers import class_balanced, spread_folds


def planted(n=200, tiles=9, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, tiles, 4, generator=g)
    x[:, 4, 1] += (y == 2) * 1.5
    return x, y


def test_areas_are_those_of_scikit_learn():
    x, y = planted()
    found = position_map(x, y, seed=3)
    fold, weight = spread_folds(y, 5, 3), class_balanced(y)
    for tile in (0, 4):
        z = (x[:, tile].double() - x[:, tile].double().mean(0)) / x[:, tile].double().std(0)
        for c in range(3):
            score = torch.zeros(len(y), dtype=torch.float64)
            for k in range(5):
                out = fold != k
                reader = Ridge(alpha=0.05 * len(y)).fit(z[out].numpy(), (y[out] == c).double().numpy(), weight[out].numpy())
                score[~out] = torch.from_numpy(reader.predict(z[~out].numpy()))
            assert float(found.area[tile, c]) == pytest.approx(roc_auc_score((y == c).numpy(), score.numpy()), abs=1e-6)
    assert found.above.nonzero().tolist()[0] == [4, 0] or bool(found.above[4, 2])
    assert int(found.area[:, 2].argmax()) == 4


def test_the_level_holds_for_the_largest_tile():
    reached = 0
    for seed in range(40):
        g = torch.Generator().manual_seed(seed)
        x, y = torch.randn(100, 16, 3, generator=g), torch.arange(100) % 2
        reached += bool(position_map(x, y).above.any())
    assert reached <= 6  # one in twenty, so 2 of 40 expected


def test_boxes_join_neighbours_only():
    area = torch.full((8, 8), 0.5)
    area[0, :3] = 0.9
    area[7, 7] = 0.95
    assert box_of(area.flatten(), 0.6, 8) == (7 / 8, 7 / 8, 1.0, 1.0)
    area[7, 7] = 0.5
    box = box_of(area.flatten(), 0.6, 8)
    assert box == (0.0, 0.0, 3 / 8, 1 / 8)
    assert place_of(box) == "the upper left"
    assert box_of(area.flatten(), 0.99, 8) is None


def test_wrong_shapes():
    with pytest.raises(UserError, match="tiles must be"):
        position_map(torch.zeros(4, 3), torch.zeros(4, dtype=torch.long))
