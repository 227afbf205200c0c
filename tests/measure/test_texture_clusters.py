"""Clusters of texture find planted textures, and their cells weigh alike."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.measure import cluster_accuracy, texture_clusters


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
    with pytest.raises(UserError, match="need at least as many rows"):
        texture_clusters(torch.rand(3, 2), clusters=9)
