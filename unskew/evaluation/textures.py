r"""textures: mean accuracy over (texture cluster, class) cells, for data without a bias column.

.. math::  \frac{1}{|\{(t, c)\}|} \sum_{t, c} \text{accuracy of the rows of class } c \text{ in cluster } t

The judged rows are clustered by a representation: nine clusters, three clusterings. Cells of more than ten rows count. The JSON also
has the first clustering's matrix of rows by cluster and class, every cluster's most frequent classes and rows near its middle, and
the accuracy of rows inside and outside the cluster that most rows of their class are in, as in appendices F and G.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.3.
Differs: see the card of the measure `texture_clusters`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.evaluation._contract import Judged
from unskew.features import compute, spec
from unskew.measure.texture_clusters import cluster_accuracy, texture_clusters
from unskew.records import Estimate

KEYS = ("textures",)
CLUSTERS, TOP, EXAMPLES = 9, 3, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    textures: str = ""  # the representation to cluster by

    def __post_init__(self) -> None:
        if self.textures:
            spec(self.textures)  # reject an unknown name before the work


@dataclass(frozen=True, slots=True)
class Record:
    representation: str
    clusterings: int
    value: float
    estimate: Estimate
    dominant: float  # accuracy of the rows in the cluster that most rows of their class are in
    elsewhere: float  # of the others
    matrix: list[list[int]]  # rows by cluster and class, of the first clustering
    top: list[list[str]]  # the most frequent classes of every cluster
    examples: list[list[int]]  # ids of rows near the middle of every cluster

    def json(self) -> dict[str, Any]:
        about = {"representation": self.representation, "clusters": CLUSTERS, "clusterings": self.clusterings}
        seen = {"matrix": self.matrix, "top_classes": self.top, "examples": self.examples}
        split = {"dominant": self.dominant, "elsewhere": self.elsewhere}
        return {"textures": {**about, **self.estimate.json(), **split, **seen}}


def check(data: DataSet, options: Options) -> None:
    if data.multi_label:
        raise UserError("--textures needs one class per row; this task has several labels per row")


def ask(judged: Judged, options: Options) -> Record:
    return accuracy_by_texture(judged.logits, judged.data, judged.index, options.textures, workers=judged.workers)


def accuracy_by_texture(logits: Tensor, data: DataSet, index: Tensor, representation: str, *, workers: int = 0) -> Record:
    """Clusters of `representation` among these rows, and the mean accuracy over their cells with the classes."""
    ids, features = compute(data, [spec(representation)], index, workers=workers)
    clusters = texture_clusters(features[representation], CLUSTERS)
    estimate = cluster_accuracy(logits[torch.searchsorted(index, ids)], data.y[ids], clusters)
    right = (logits[torch.searchsorted(index, ids)].argmax(1) == data.y[ids]).double()
    matrix = cells(clusters[:, 0], data.y[ids], CLUSTERS, len(data.classes))
    inside = matrix.argmax(0)[data.y[ids]] == clusters[:, 0]
    top = [[data.classes[c] for c in row.topk(min(TOP, len(row))).indices.tolist() if row[c] > 0] for row in matrix]
    return Record(
        representation, clusters.shape[1], estimate.value, estimate, float(right[inside].mean()), float(right[~inside].mean()),
        matrix.tolist(), top, nearest(features[representation], clusters[:, 0], ids),
    )  # fmt: skip


def cells(clusters: Tensor, y: Tensor, size: int, classes: int) -> Tensor:
    """(clusters, classes) numbers of rows.

    >>> cells(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), 2, 2).tolist()
    [[0, 2], [1, 0]]
    """
    return (clusters * classes + y).bincount(minlength=size * classes).view(size, classes)


def nearest(features: Tensor, clusters: Tensor, ids: Tensor) -> list[list[int]]:
    """The ids of the rows nearest to the mean of their cluster."""
    flat = torch.nn.functional.normalize(features.reshape(len(features), -1).float(), dim=1)
    found = []
    for cluster in range(CLUSTERS):
        rows = (clusters == cluster).nonzero().flatten()
        gap = (flat[rows] - flat[rows].mean(0)).square().sum(1)
        found.append(ids[rows[gap.argsort()[:EXAMPLES]]].tolist())
    return found
