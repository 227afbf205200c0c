"""Unbiased accuracy over texture clusters of the rows that were judged: groups by look where no bias column exists."""

from typing import Any

import torch
from torch import Tensor

from unskew.data._dataset import DataSet
from unskew.errors import UserError
from unskew.measure.texture_clusters import cluster_accuracy, texture_clusters
from unskew.representations._base import compute, spec

CLUSTERS = 9


def accuracy_by_texture(logits: Tensor, data: DataSet, index: Tensor, representation: str, *, workers: int = 0) -> dict[str, Any]:
    """Clusters of `representation` among these rows, and the mean accuracy over their cells with the classes."""
    if data.multi_label:
        raise UserError("textures: cells of cluster and class need one class per row, this task has several labels")
    ids, features = compute(data, [spec(representation)], index, workers=workers)
    clusters = texture_clusters(features[representation], CLUSTERS)
    found = cluster_accuracy(logits[torch.searchsorted(index, ids)], data.y[ids], clusters)
    return {"representation": representation, "clusters": CLUSTERS, "clusterings": clusters.shape[1], **found.json()}
