"""Losses as plain functions, one value per sample, for any training loop."""

import torch.nn.functional as F
from torch import Tensor


def task_loss(logits: Tensor, y: Tensor) -> Tensor:
    r"""The loss of the task itself, per sample: cross-entropy for classes, mean binary cross-entropy for label sets.

    .. math::  \ell_i = -\log \mathrm{softmax}(z_i)_{y_i}
               \qquad\text{or}\qquad
               \ell_i = -\frac1L \sum_l y_{il} \log \sigma(z_{il}) + (1 - y_{il}) \log(1 - \sigma(z_{il}))
    """
    if y.ndim == 1:
        return F.cross_entropy(logits, y, reduction="none")
    return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="none").mean(1)
