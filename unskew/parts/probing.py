"""Read a probe's features: rows that it kept for itself, marked by NaN, are not judged."""

import dataclasses

import torch
from torch import Tensor

from unskew.core.matrix import Matrix, Rows
from unskew.measure.representation_bias import BiasEstimate, bias_of_labels
from unskew.stats.streamed import without_numbers


def read(features: Rows, y: Tensor, *, seed: int = 0) -> BiasEstimate:
    """Representation bias of the rows whose features are numbers; `n` counts them. The others have gain 0: nothing is known of them."""
    judged = ~without_numbers(features)
    if bool(judged.all()):
        return bias_of_labels(features, y, seed=seed)
    numbers = features if isinstance(features, Matrix) else torch.nan_to_num(features)  # rows of weight 0 are not read
    estimate = bias_of_labels(numbers, y, judged.double(), seed=seed)
    return dataclasses.replace(estimate, gain=torch.nan_to_num(estimate.gain))
