"""Selection rules: which step's weights are kept. The report names the rule, and the labels it uses, beside every number."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.core.durations import check_duration
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.losses import task_loss
from unskew.stats.f1 import decided, macro_f1
from unskew.stats.groups import group_sums

Rule = Literal[
    "last", "val-accuracy", "val-loss", "val-f1", "val-worst-class", "val-pseudo-groups", "val-worst-slice", "val-worst-group", "oracle"
]  # fmt: skip
GUESSED = ("val-pseudo-groups", "val-worst-slice")  # rules over groups that are found without bias labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectConfig:
    rule: Rule = (
        "last"  # last, val-accuracy, -loss, -f1, -worst-class, -pseudo-groups, -worst-slice, -worst-group, or oracle (val)
    )
    every: str = "1 epoch"  # interval between looks at the validation split
    patience: int = 0  # stop after this many looks without improvement; 0: never

    def __post_init__(self) -> None:
        check_duration(self.every, "select.every")
        if self.patience < 0 or (self.patience and self.rule == "last"):
            raise UserError("select.patience must not be negative, and needs a rule that looks at the validation split")


# rule -> (split it looks at, labels it uses)
LOOKS_AT: dict[str, tuple[str, tuple[str, ...]]] = {
    "last": ("", ()),
    "val-accuracy": ("val", ("y",)),
    "val-loss": ("val", ("y",)),
    "val-f1": ("val", ("y",)),
    "val-worst-class": ("val", ("y",)),
    "val-pseudo-groups": ("val", ("y",)),
    "val-worst-slice": ("val", ("y",)),
    "val-worst-group": ("val", ("y", "bias")),
    "oracle": ("val", ("y", "bias")),
}


def check(rule: Rule, data: DataSet) -> None:
    """Reject a rule that needs a split or labels that the data does not have."""
    split, _ = LOOKS_AT[rule]
    if split and not data.has(split):
        raise UserError(f"select.rule={rule} needs a {split} split and {data.name} has none; use select.rule=last")
    if rule in ("val-worst-group", "oracle") and not data.bias_names:
        raise UserError(f"select.rule={rule} needs a bias column; name one with --bias, or use val-worst-class")
    if rule == "oracle" and (pairs := data.alignment()) is not None:
        rows = data.rows("val")
        aligned, conflicting = pairs.of_rows(data.y[rows], data.bias[rows])
        if not bool(aligned.any()) or not bool(conflicting.any()):
            missing = "aligned" if not bool(aligned.any()) else "conflicting"
            raise UserError(
                f"select.rule=oracle needs aligned and conflicting rows in val; {data.name} has no {missing} ones there"
            )
    if data.multi_label and rule not in ("last", "val-accuracy", "val-loss", "val-f1"):
        raise UserError(f"select.rule={rule} needs one class per row; use last, val-accuracy, val-loss or val-f1")


def by_class(rule: Rule, data: DataSet) -> bool:
    """Whether the rule needs no more than the predicted class of each row."""
    return not data.multi_label and rule not in ("val-loss", "val-f1")


def score(rule: Rule, logits: Tensor, data: DataSet, index: Tensor, guessed: Tensor | None = None) -> float:
    """What the rule maximises, from the logits of its split, or from the predicted classes if these are enough (`by_class`).

    val-accuracy: plain accuracy. val-loss: minus the mean loss. val-f1: macro F1. val-worst-class: lowest class accuracy.
    val-worst-group: lowest (class, bias) accuracy, empty groups left out. val-pseudo-groups, val-worst-slice: lowest accuracy over
    the groups `guessed`, (N,) codes by sample id (training.pseudo). oracle: (aligned + conflicting) / 2, from the bias labels of the
    validation split; never from the test.
    """
    y = data.y[index]
    if rule == "val-loss":
        return -float(task_loss(logits, y).double().mean())
    if rule == "val-f1":
        return macro_f1(*decided(logits, y))
    if data.multi_label:
        return float(((logits > 0).long() == y.long()).float().mean())
    right = ((logits.argmax(1) if logits.ndim == 2 else logits) == y).double()
    if rule in ("val-accuracy", "last"):
        return float(right.mean())
    if rule == "oracle" and (pairs := data.alignment()) is not None:
        halves = [right[rows].mean() for rows in pairs.of_rows(y, data.bias[index])]
        return float(sum(halves) / 2)  # NaN if there is no such row
    if rule in GUESSED:
        assert guessed is not None  # computed before the training
        code, size = guessed[index], int(guessed.max()) + 1
    elif rule == "val-worst-class" or not data.bias_names:
        code, size = y, len(data.classes)
    else:
        code, size = data.group[index], data.num_groups
    known = code >= 0
    sums, counts = group_sums(right[known], code[known], size)
    by_group = (sums / counts.clamp(min=1))[counts > 0]
    return float(by_group.min()) if len(by_group) else float("nan")


def better(new: float, old: float | None) -> bool:
    """Strictly better; the first look always is, NaN never is."""
    return old is None or (not torch.isnan(torch.tensor(new)) and new > old)
