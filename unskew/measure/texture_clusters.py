r"""Texture clusters: groups by appearance where there is no bias column, and the unbiased accuracy over them.

Gram matrices of an early layer are L2-normalised and clustered by k-means; with clusters k and classes y

.. math::  A = \frac13 \sum_{s=1}^{3} \frac{1}{|\mathcal{C}_s|} \sum_{(k, y) \in \mathcal{C}_s} \hat a_{ky}, \qquad
           \mathcal{C}_s = \{(k, y) : n_{ky} > 10\}

over three clusterings s with different seeds.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.3 and appendix
(k = 9, mini-batch k-means, batch 1,024).
Differs: cells of more than 10 rows, as in the paper; the released code also keeps cells of 10.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.measure.groups import groups
from unskew.records import Estimate


def texture_clusters(features: Tensor, clusters: int = 9, seeds: Sequence[int] = (0, 1, 2)) -> Tensor:
    """(n, len(seeds)) cluster of every row in each clustering."""
    from sklearn.cluster import MiniBatchKMeans

    flat = torch.as_tensor(features).reshape(len(features), -1).float()
    if len(flat) < clusters:
        raise UserError(f"{clusters} clusters need at least as many rows, got {len(flat)}")
    if not bool(torch.isfinite(flat).all()):
        raise UserError(f"features have NaN or infinity, first in row {int((~torch.isfinite(flat)).any(1).nonzero()[0])}")
    flat = torch.nn.functional.normalize(flat, dim=1)
    clusterings = [
        MiniBatchKMeans(n_clusters=clusters, batch_size=1024, random_state=seed, n_init=3).fit_predict(flat.numpy())
        for seed in seeds
    ]
    return torch.stack([torch.from_numpy(c).long() for c in clusterings], 1)


def cluster_accuracy(logits_or_predictions: Tensor, y: Tensor, clusters: Tensor) -> Estimate:
    """Unbiased accuracy over (cluster, class) cells, averaged over the clusterings (n, S)."""
    clusters = clusters.reshape(len(y), -1)
    estimates = [groups(logits_or_predictions, y, column).unbiased for column in clusters.unbind(1)]
    values = [e.value for e in estimates if not math.isnan(e.value)]
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0, estimates[0].reason if estimates else "no clustering")
    mean = sum(values) / len(values)
    # The clusterings share their rows, so averaging them does not narrow the interval.
    half = max((e.high - e.low) / 2 for e in estimates if not math.isnan(e.value))
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), min(e.n for e in estimates))


FUNCTIONS = (
    cluster_accuracy,
    texture_clusters,
)
RANGE = (0.0, 1.0)
HIGHER = "accuracy is higher over cells of texture and class"
