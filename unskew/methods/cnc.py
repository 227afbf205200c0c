r"""Correct-n-contrast: rows of one class that a first model calls differently are drawn together, rows it calls alike pushed apart.

.. math::
    L = (1 - \lambda)\, \mathrm{CE} + \frac{\lambda}{B} \sum_i \frac{-1}{|P_i|} \sum_{j \in P_i}
        \log \frac{e^{u_i \cdot u_j / \tau}}{\sum_{k \in P_i \cup N_i} e^{u_i \cdot u_k / \tau}}

    P_i = \{ j : y_j = y_i,\ \hat y_j \ne \hat y_i \}, \qquad N_i = \{ k : y_k \ne y_i,\ \hat y_k = \hat y_i \}

=====  =============  ========================================================================================================
y^     opinion        what the first model says, into OUT-opinion.parquet
u      -              the last features through a projection, of length 1 (method bcon)
=====  =============  ========================================================================================================

Stages: `gce` for `steps` steps into OUT-first; `bcon` with its opinions in place of bias labels, on rows drawn so that every
(class, opinion) cell is equally frequent, into OUT.

Source: Zhang, Sohoni, Zhang, Finn, Ré, "Correct-n-contrast: a contrastive approach for improving robustness to spurious correlations",
ICML 2022; after it, from memory.
Differs: batches hold all cells equally often, and every row is an anchor, where the paper builds batches around anchors that the first
model gets right; the first model is trained with GCE instead of strong weight decay or few epochs.
"""

from dataclasses import dataclass

import polars as pl
import torch

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.methods._contract import Stage
from unskew.records import Run, Table
from unskew.repairs.independence import tempered
from unskew.repairs.inverse_frequency import inverse_frequency
from unskew.stats.independence import LEAST_EFFECTIVE

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    steps: int = 300  # of the first model
    weight: float = 0.5  # lambda: weight of the contrastive term
    temperature: float = 0.1  # tau
    projection: int = 128  # width of u
    least: float = LEAST_EFFECTIVE  # effective rows below which the chances of being drawn are tempered

    def __post_init__(self) -> None:
        if self.steps < 1 or self.least < 1 or not 0 <= self.weight < 1 or self.temperature <= 0:
            raise UserError("cnc: steps and least must be at least 1, weight lie in [0, 1) and temperature be above 0")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("cnc needs one class per row, but this task has several labels per row; use independence")
    short = {"train.steps": cfg.steps, "select.rule": "last", "select.patience": 0}
    short |= {} if stage.frozen else {"data.augment": "none"}
    first = stage.run(stage.beside("first"), "gce", short)
    index, logits = stage.predict(first, "train")
    y, opinion = data.y[index], logits.argmax(1)
    if bool((y == opinion).all()):
        raise UserError(f"cnc: the first model makes no errors on its rows; lower steps={cfg.steps}")
    weight = tempered(inverse_frequency(len(data.classes) * y + opinion), cfg.least)
    progress.say(f"cnc: {int((y != opinion).sum())} of {len(y)} training rows contradict the first model")
    table = Table(
        pl.DataFrame({"index": index.numpy(), "weight": weight.numpy(), "opinion": opinion.to(torch.long).numpy()}),
        {"name": "cnc", "fingerprint": data.fingerprint, "use": "chance"},
    )
    place = stage.beside("opinion.parquet")
    table.save(place)  # bcon reads it
    contrast = {
        "opinion": str(place), "negatives": "same", "balanced": False, "alpha": cfg.weight / (1 - cfg.weight),
        "temperature": cfg.temperature, "projection": cfg.projection,
    }  # fmt: skip
    return stage.run(stage.out, "bcon", {"train.weights": "chance", **contrast}, weights=table)
