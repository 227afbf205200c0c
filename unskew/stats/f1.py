"""F1 of decisions, and labels as zeros and ones."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError


def macro_f1(guess: Tensor, truth: Tensor) -> float:
    r"""2 tp / (2 tp + fp + fn), averaged over labels that occur.

    >>> macro_f1(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    0.3333333333333333
    """
    seen = truth.sum(0) > 0
    hit = (guess * truth).double().sum(0)
    total = guess.double().sum(0) + truth.double().sum(0)
    return float((2 * hit / total.clamp(min=1))[seen].mean()) if bool(seen.any()) else math.nan


def label_matrix(labels: Tensor) -> Tensor:
    labels = torch.as_tensor(labels)
    if not len(labels):
        raise UserError("no rows")
    if labels.ndim == 1:
        if bool((labels < 0).any()):
            raise UserError("labels must be class codes from 0 on")
        return F.one_hot(labels.long()).float()
    if not bool(((labels == 0) | (labels == 1)).all()):
        raise UserError("a label matrix must hold 0 and 1")
    return labels.float()


def decided(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions (the largest logit, or every one above 0) and true labels, as zeros and ones (N, L)."""
    truth = label_matrix(labels)
    if labels.ndim == 1:
        width = truth.shape[1]  # a class that does not occur has no column; predicting it counts as an error in the others
        return F.one_hot(logits.argmax(1), max(logits.shape[1], width))[:, :width].float(), truth
    return (logits > 0).float(), truth
