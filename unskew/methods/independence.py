r"""independence, then training: rows are drawn so that class and a biased model's opinion are independent, and a model learns from them.

.. math::
    P_w(y, o) = P(y)\, P(o), \qquad f = \arg\min\ \mathbb{E}_{i \sim w}\ \mathrm{CE}(f(x_i), y_i)

Stages: the repair `independence` into OUT-weights.parquet (its card says where the opinion o comes from); `erm` on rows drawn with
chances w, into OUT. Few rows carry much of the weight, so the regularisation and augmentation of the default training matter here
more than elsewhere.

Source: see the repair.
Differs: see the repair.
"""

from dataclasses import dataclass

from unskew.methods._contract import Stage
from unskew.records import Run
from unskew.stats.independence import LEAST_EFFECTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    steps: int = 150  # of each network of the reference, where the reference is a network
    folds: int = 3  # networks of the reference
    least: float = LEAST_EFFECTIVE  # effective rows below which weights are tempered


def train(stage: Stage, cfg: Config) -> Run:
    given = {"steps": cfg.steps, "folds": cfg.folds, "least": cfg.least}
    table = stage.repair(stage.beside("weights.parquet"), "independence", given)
    return stage.run(stage.out, "erm", {"train.weights": "chance"}, weights=table)
