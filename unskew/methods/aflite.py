r"""AFLite, then training: rows that held-out linear classifiers get right are filtered out, and a model learns from the rest.

.. math::  S = \mathrm{AFLite}(\{(\phi(x_i), y_i)\}), \qquad f = \arg\min \sum_{i \in S} \mathrm{CE}(f(x_i), y_i)

Stages: `erm` on a random tenth of the rows (`warm`) into OUT-features, whose last layer is phi, or the run named by `features`,
unless `phi` names a representation; the repair `aflite` into OUT-kept.parquet (its card describes the filter), which drops that
tenth and filters the rest; `erm` on the rows kept, into OUT.

Source: Le Bras et al., "Adversarial filters of dataset biases", ICML 2020; a baseline of the PGD submission (see the card of
pgd).
Differs: see the card of the repair.
"""

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import torch

from unskew.core.config import whole_names
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.methods._contract import Stage
from unskew.records import Run, Table

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    features: str = ""  # a finished run whose last layer is phi
    phi: tuple[str, ...] = ()  # representations, instead of a network's last layer
    epochs: float = 10.0  # epochs of the network that gives phi, as steps of all rows
    warm: float = 0.1  # share of the rows that it is trained on, which are then left out
    size: float = 0.2  # share of the rows at which the filter stops
    tau: float = 0.75  # lowest score of a row that may be removed
    calibrate: Literal["independence", "none"] = "independence"  # see the repair; none: rows are dropped for good
    models: int = 64  # linear classifiers per round

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", whole_names(self.phi))
        if self.epochs <= 0 or not 0 < self.warm < 1:
            raise UserError("aflite: epochs must be above 0, and warm a share between 0 and 1")
        if self.features and self.phi:
            raise UserError("aflite: features and phi both name what is read; leave one out")


def train(stage: Stage, cfg: Config) -> Run:
    if stage.data().multi_label:
        raise UserError("aflite needs one class per row, but this task has several labels per row")
    given: dict[str, Any] = {"size": cfg.size, "tau": cfg.tau, "models": cfg.models, "calibrate": cfg.calibrate}
    if cfg.phi:
        given |= {"phi": ",".join(cfg.phi)}
    else:
        given |= {"run": cfg.features or str(_features(stage, cfg).path)}
    return stage.run(stage.out, "erm", weights=stage.repair(stage.beside("kept.parquet"), "aflite", given))


def _features(stage: Stage, cfg: Config) -> Run:
    """A network trained on a random part of the rows, which the filter then leaves out: it must not know the rows it describes."""
    short = {"train.epochs": cfg.epochs, "train.steps": None, "select.rule": "last", "select.patience": 0}
    short |= {"train.weights": "auto", **({} if stage.frozen else {"data.augment": "none"})}
    data = stage.data()
    rows = data.rows("train")
    count = max(len(data.classes), round(cfg.warm * len(rows)))
    some = rows[torch.randperm(len(rows), generator=stream(stage.seed, "aflite", "features"))[:count]].sort().values
    part = pl.DataFrame({"index": some.numpy(), "weight": [1.0] * len(some)})
    table = Table(part, {"name": "aflite", "fingerprint": data.fingerprint, "use": "keep"})
    return stage.run(stage.beside("features"), "erm", short, weights=table)
