r"""textures: mean accuracy over (texture cluster, class) cells, for data without a bias column.

.. math::  \frac{1}{|\{(t, c)\}|} \sum_{t, c} \text{accuracy of the rows of class } c \text{ in cluster } t

The judged rows are clustered by a representation: nine clusters, three clusterings. Cells of more than ten rows count.

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
CLUSTERS = 9


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

    def json(self) -> dict[str, Any]:
        about = {"representation": self.representation, "clusters": CLUSTERS, "clusterings": self.clusterings}
        return {"textures": {**about, **self.estimate.json()}}


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
    return Record(representation, clusters.shape[1], estimate.value, estimate)
