r"""Cross-data-set average precision: how well a model trained on one data set ranks the classes of another.

.. math::  AP_c = \sum_k (R_k - R_{k-1}) P_k, \qquad \text{per class } c \text{ that both sets have, and their mean}

P and R are precision and recall among the rows of the other set, ranked by the model's score for class c.

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2 (Table 2: training on one video set, testing on another).
Differs: nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError


@dataclass(frozen=True, slots=True)
class CrossDataset:
    mean: float
    by_class: dict[str, float]
    rows: dict[str, int]  # of each shared class in the other set
    n: int  # rows evaluated


def cross_dataset(logits: Tensor, trained_classes: Sequence[str], y: Tensor, classes: Sequence[str]) -> CrossDataset:
    """`logits` (n, trained classes) of the other set's rows, whose labels `y` are codes into `classes`."""
    from sklearn.metrics import average_precision_score

    if logits.shape != (len(y), len(trained_classes)):
        raise UserError(f"logits have shape {tuple(logits.shape)}, expected ({len(y)}, {len(trained_classes)})")
    shared = [name for name in classes if name in trained_classes and bool((y == list(classes).index(name)).any())]
    if len(shared) < 2:
        raise UserError(f"the two data sets share {len(shared)} classes; average precision needs at least two")
    codes = torch.tensor([list(classes).index(name) for name in shared])
    rows = torch.isin(y, codes)
    score = logits[rows].double().softmax(1)
    truth = y[rows]
    by_class = {}
    for name, code in zip(shared, codes.tolist(), strict=True):
        ranked = score[:, list(trained_classes).index(name)]
        by_class[name] = float(average_precision_score((truth == code).numpy().astype(int), ranked.numpy()))
    counts = {name: int((truth == code).sum()) for name, code in zip(shared, codes.tolist(), strict=True)}
    return CrossDataset(sum(by_class.values()) / len(by_class), by_class, counts, int(rows.sum()))


FUNCTIONS = (cross_dataset,)
RANGE = (0.0, 1.0)
HIGHER = "the classes are ranked better"
