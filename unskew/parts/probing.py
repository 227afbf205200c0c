"""Read a probe's features: rows that it kept for itself, marked by NaN, are not judged."""

import dataclasses

import torch
from torch import Tensor

from unskew.measure.representation_bias import BiasEstimate, bias_of_labels


def read(features: Tensor, y: Tensor, *, seed: int = 0) -> BiasEstimate:
    """Representation bias of the rows whose features are numbers; `n` counts them. The others have gain 0: nothing is known of them."""
    judged = ~torch.isnan(features).any(1)
    if bool(judged.all()):
        return bias_of_labels(features, y, seed=seed)
    estimate = bias_of_labels(torch.nan_to_num(features), y, judged.double(), seed=seed)
    return dataclasses.replace(estimate, gain=torch.nan_to_num(estimate.gain))
