"""Bias dependency, temporal structure, texture clusters and cross-data-set precision, each on a case worked out by hand."""

import pytest
import torch
from sklearn.metrics import average_precision_score

from unskew.core.errors import UserError
from unskew.measure import bias_dependency, cluster_accuracy, cross_dataset, temporal_structure_score, texture_clusters


def test_temporal_structure():
    clips = torch.arange(4.0).view(1, 4, 1, 1, 1).expand(3, -1, 1, 2, 2)
    assert temporal_structure_score(lambda x: x.mean(1).flatten(1), [clips]).value == 0  # order is averaged away
    # The first frame forward is 0, backward 3, in each of four pixels: distance sqrt(4 * 9).
    assert temporal_structure_score(lambda x: x[:, 0].flatten(1), [clips, clips]).value == pytest.approx(6)
    with pytest.raises(UserError, match="shape"):
        temporal_structure_score(lambda x: x, [torch.rand(2, 3)])


def test_bias_dependency_by_hand():
    y = torch.tensor([0] * 8 + [1] * 8)
    weights = torch.tensor([float(k % 8) for k in range(16)])
    seen = []

    def accuracy(rows):
        seen.append(rows)
        return 0.9 if bool((weights[rows] >= 6).all()) else 0.95 + 0.01 * len(rows) / 16

    found = bias_dependency(accuracy, weights, y)
    # Repaired subsets keep the top quarter, half and three quarters of each class; only the first is all of weight 6 and 7.
    assert found.repaired == pytest.approx((0.9, 0.955, 0.9575))
    assert [len(r) for r in seen] == [4, 8, 12] * 2
    assert all(y[r].bincount().tolist() == [len(r) // 2] * 2 for r in seen)
    assert found.beta == pytest.approx(sum(a - b for a, b in zip(found.random, found.repaired, strict=True)) / 3)
    with pytest.raises(UserError, match="keep rates"):
        bias_dependency(accuracy, weights, y, rates=(1.0,))


def test_texture_clusters_find_planted_textures_and_weigh_cells_alike():
    g = torch.Generator().manual_seed(0)
    texture = torch.randint(0, 3, (600,), generator=g)
    features = torch.eye(3)[texture] * 5 + 0.1 * torch.randn(600, 3, generator=g)
    clusters = texture_clusters(features, clusters=3)
    for column in clusters.unbind(1):
        joint = torch.zeros(3, 3).index_put_((texture, column), torch.ones(600), accumulate=True)
        assert (joint.max(1).values / joint.sum(1)).min() > 0.99
    y = torch.randint(0, 2, (600,), generator=g)
    right_only_in_texture_0 = torch.where(texture == 0, y, 1 - y)
    assert cluster_accuracy(right_only_in_texture_0, y, clusters).value == pytest.approx(1 / 3, abs=0.02)
    with pytest.raises(UserError, match="cannot make"):
        texture_clusters(torch.rand(3, 2), clusters=9)


def test_cross_dataset_maps_classes_by_name():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 3, generator=g)  # trained on run, jump, sit
    y = torch.randint(0, 3, (50,), generator=g)  # the other set: sit, run, swim
    found = cross_dataset(logits, ["run", "jump", "sit"], y, ["sit", "run", "swim"])
    assert set(found.by_class) == {"sit", "run"}
    rows = y < 2
    score = logits[rows].double().softmax(1)
    assert found.by_class["sit"] == pytest.approx(average_precision_score(y[rows] == 0, score[:, 2]))
    assert found.by_class["run"] == pytest.approx(average_precision_score(y[rows] == 1, score[:, 0]))
    assert found.n == int(rows.sum())
    with pytest.raises(UserError, match="share 0 classes"):
        cross_dataset(logits, ["a", "b", "c"], y, ["sit", "run", "swim"])
