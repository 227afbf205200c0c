r"""Just train twice: rows that a first, short training gets wrong count more in the second.

.. math::
    E = \{ i : \arg\max f_\text{first}(x_i) \ne y_i \}, \qquad
    L(\theta) = \frac1{\sum_i w_i} \sum_i w_i\, \mathrm{CE}_i, \qquad w_i = \lambda \text{ for } i \in E, \text{ else } 1

Stages: erm for `first` epochs into OUT-first; its errors on the training rows; erm again, from scratch, weighted, into OUT.

Source: Liu et al., "Just train twice: improving group robustness without training group information", ICML 2021, Algorithm 1.
Differs: rows of E are weighted in the loss (or drawn more often, with train.weights=sampler) instead of copied lambda times. By
default lambda is lowered until class and the first model's opinion are independent, where 20 would go further and turn the shortcut
round (`calibrate=none` is the paper's).
"""

from dataclasses import dataclass
from typing import Literal

import polars as pl
import torch

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.files import write_json
from unskew.methods._contract import Stage
from unskew.records import Run, Table
from unskew.stats.independence import calibrate

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    first: float = 1.0  # epochs of the first training
    upweight: float = 20.0  # lambda
    calibrate: Literal["independence", "none"] = "independence"  # lower lambda where it would go past independence; none: never

    def __post_init__(self) -> None:
        if self.first <= 0 or self.upweight < 1:
            raise UserError("jtt: first must be above 0 and upweight at least 1")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("jtt needs one class per row, but this task has several labels per row")
    short = {"train.epochs": cfg.first, "train.steps": None, "select.rule": "last", "select.patience": 0}
    first = stage.run(stage.beside("first"), "erm", short)
    index, logits = stage.predict(first, "train")
    wrong = logits.argmax(1) != data.y[index]
    if not bool(wrong.any()):
        raise UserError(f"jtt: the first training makes no errors on its rows; lower first={cfg.first:g}")
    progress.say(f"jtt: {int(wrong.sum())} of {len(index)} training rows are misclassified after {cfg.first:g} epochs")
    weight = torch.where(wrong, cfg.upweight, 1.0)
    if cfg.calibrate == "independence":
        tempered = calibrate(weight, data.y[index], logits.argmax(1), len(data.classes))
        progress.say(f"jtt: {tempered.words()}")
        weight = tempered.weight.float()
    table = Table(
        pl.DataFrame({"index": index.numpy(), "weight": weight.numpy()}),
        {"name": "jtt", "fingerprint": data.fingerprint, "errors": int(wrong.sum())},
    )
    run = stage.run(stage.out, "erm", weights=table)
    outcome = {"stage": "jtt", "first": str(first.path), "errors": int(wrong.sum()), "upweight": cfg.upweight}
    write_json(run.path / "stage.json", outcome)
    return run
