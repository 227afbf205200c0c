"""What predictions come to: accuracy by group, error rates by bias value, counts by class, figures of a multi-label task.

Predictions are logits (n, C), or, of rows with one class each, the predicted classes (n,).
"""

from typing import Any

import torch
from torch import Tensor

from unskew.core.matrix import Rows, passes
from unskew.data.dataset import DataSet
from unskew.measure.calibration import calibration_by_bias
from unskew.measure.error_rates import error_rates
from unskew.measure.groups import groups
from unskew.measure.label_sets import by_bias, label_sets
from unskew.records import BiasRates, Groups, LabelFigures


def judge(logits: Rows, data: DataSet, index: Tensor) -> Groups:
    """The group table of these rows."""
    pairs = data.alignment()
    return groups(
        decisions(logits),
        data.y[index],
        data.bias[index] if data.bias_names else None,
        aligned=None if pairs is None else pairs.aligned,
        neither=None if pairs is None else pairs.neither,
        classes=data.classes,
        bias_names=data.bias_names,
        bias_values=data.bias_values,
    )


def decisions(logits: Rows) -> Tensor:
    """Logits in memory as they are; of those in a file the labels that are predicted, 1, and those that are not, 0, a byte each."""
    if isinstance(logits, Tensor):
        return logits
    return torch.cat([(logits[part] > 0).to(torch.int8) for part in passes(*logits.shape)])


def label_figures(logits: Rows, data: DataSet, index: Tensor) -> LabelFigures | None:
    """Macro F1 at probability one half and mean average precision, and both by label and bias value."""
    if not data.multi_label:
        return None
    y = data.y[index]
    figures = label_sets(logits, y)
    labels: list[dict[str, Any]] = [
        {"label": name, **numbers} for name, numbers in zip(data.classes, figures.per_label, strict=True)
    ]
    for k, (bias, values) in enumerate(zip(data.bias_names, data.bias_values, strict=True)):
        for row, cells in zip(labels, by_bias(decisions(logits), y, data.bias[index, k], len(values)), strict=True):
            row.setdefault("by_bias", {})[bias] = dict(zip(values, cells, strict=True))
    return LabelFigures(
        f1_macro=figures.f1,
        average_precision=figures.average_precision,
        label_intervals={"f1_macro": figures.f1_interval, "average_precision": figures.average_precision_interval},
        labels_judged=figures.judged,
        per_label=labels,
    )


def bias_rates(logits: Rows, data: DataSet, index: Tensor, sure: Tensor | None = None) -> dict[str, BiasRates]:
    """Error rates and calibration of these rows by the values of each bias column; predicted classes need their probabilities, `sure`."""
    found, y = {}, data.y[index]
    for k, (name, values) in enumerate(zip(data.bias_names, data.bias_values, strict=True)):
        bias = data.bias[index, k]
        rates = error_rates(decisions(logits), y, bias, classes=data.classes, values=values, name=name)
        found[name] = BiasRates(name, rates, *calibration_by_bias(logits, y, bias, values=values, name=name, sure=sure))
    return found


def predicted_counts(logits: Rows, data: DataSet) -> list[int]:
    """How many rows are given each class, or label."""
    said = decisions(logits)
    counts = (said > 0).sum(0) if data.multi_label else _classes(said).bincount(minlength=len(data.classes))
    return [int(n) for n in counts]


def _classes(said: Tensor) -> Tensor:
    return said.argmax(1) if said.ndim == 2 else said


def confusion_matrix(logits: Rows, data: DataSet, index: Tensor) -> list[list[int]]:
    """Rows by true class, down, and predicted class, across; empty with several labels per row."""
    if data.multi_label:
        return []
    size = len(data.classes)
    found: list[list[int]] = (
        (data.y[index] * size + _classes(decisions(logits))).bincount(minlength=size * size).view(size, size).tolist()
    )
    return found


def true_counts(data: DataSet, index: Tensor) -> list[int]:
    """How many of these rows have each class, or label."""
    y = data.y[index]
    counts = (y > 0).sum(0) if data.multi_label else y.bincount(minlength=len(data.classes))
    return [int(n) for n in counts]
