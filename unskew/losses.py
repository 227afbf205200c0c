"""Losses as plain functions, one value per sample, for any training loop."""

import torch.nn.functional as F
from torch import Tensor

from unskew.errors import UserError


def task_loss(logits: Tensor, y: Tensor) -> Tensor:
    r"""The loss of the task itself, per sample: cross-entropy for classes, mean binary cross-entropy for label sets.

    .. math::  \ell_i = -\log \mathrm{softmax}(z_i)_{y_i}
               \qquad\text{or}\qquad
               \ell_i = -\frac1L \sum_l y_{il} \log \sigma(z_{il}) + (1 - y_{il}) \log(1 - \sigma(z_{il}))
    """
    if y.ndim == 1:
        return F.cross_entropy(logits, y, reduction="none")
    return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="none").mean(1)


def gce(logits: Tensor, y: Tensor, q: float = 0.7, *, scaled: bool = False) -> Tensor:
    r"""Generalised cross-entropy, per sample: rows that the model already likes count more, so it grows biased.

    .. math::  \ell_i = \frac{1 - p_{y_i}^q}{q}, \qquad \nabla \ell_i = p_{y_i}^q \, \nabla \mathrm{CE}_i

    `scaled` gives what the public codes of LfF and PGD minimise instead, q p^q CE with the factor held fixed: the same
    direction, q times the length, and a value that is no longer this loss.

    >>> import torch
    >>> float(gce(torch.zeros(1, 2), torch.tensor([0]), q=1.0))  # q = 1: one minus the probability
    0.5
    """
    if not 0 < q <= 1:
        raise UserError(f"q={q}: must lie in (0, 1]")
    ce = F.cross_entropy(logits, y, reduction="none")
    if scaled:
        return q * (-q * ce.detach()).exp() * ce
    return -(-q * ce).expm1() / q  # p^q = exp(-q CE): no power of a probability that underflows
