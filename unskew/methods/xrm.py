r"""XRM: rows that two biased networks get wrong are an environment of their own; classes and environments are drawn equally often.

.. math::
    m_i = \big[\arg\max f_1(x_i) \ne y_i \ \text{ or } \ \arg\max f_2(x_i) \ne y_i\big], \qquad w_i = \frac{1}{n_{y_i m_i}}

Stages: `xrm_twins` for `steps` steps into OUT-twins (its card says how the two networks become biased); the environments m and weights
into OUT-weights.parquet; `erm` on rows drawn with chances w, into OUT. Weights that leave fewer than `least` effective rows are
tempered.

Source: Pezeshki et al., "Discovering environments with XRM", ICML 2024.
Differs: rows are drawn so that all (class, environment) groups are equally frequent, where the paper prefers group DRO on them; what
the networks said at the row's last visit in training decides.
"""

from dataclasses import dataclass

import polars as pl

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.methods._contract import Stage
from unskew.records import Run, Table
from unskew.repairs.independence import tempered
from unskew.repairs.inverse_frequency import inverse_frequency
from unskew.stats.independence import LEAST_EFFECTIVE, effective_rows

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    steps: int = 600  # of the two networks
    least: float = LEAST_EFFECTIVE  # effective rows below which weights are tempered

    def __post_init__(self) -> None:
        if self.steps < 1 or self.least < 1:
            raise UserError("xrm: steps and least must be at least 1")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("xrm needs one class per row, but this task has several labels per row; use independence")
    short = {"train.steps": cfg.steps, "select.rule": "last", "select.patience": 0}
    short |= {} if stage.frozen else {"data.augment": "none"}
    twins = stage.run(stage.beside("twins"), "xrm_twins", short)
    rows = data.rows("train")
    said = stage.buffer(twins, "said")[rows]
    rows, said = rows[said[:, 0] >= 0], said[said[:, 0] >= 0]  # a short training may not reach every row
    y = data.y[rows]
    wrong = (said != y[:, None]).any(1)
    weight = tempered(inverse_frequency(2 * y + wrong.long()), cfg.least)
    progress.say(
        f"xrm: {int(wrong.sum())} of {len(rows)} training rows are wrong in one of two networks; "
        f"{effective_rows(weight):.0f} effective rows"
    )
    table = Table(
        pl.DataFrame({"index": rows.numpy(), "weight": weight.numpy(), "environment": wrong.long().numpy()}),
        {"name": "xrm", "fingerprint": data.fingerprint, "use": "chance"},
    )
    run = stage.run(stage.out, "erm", {"train.weights": "chance"}, weights=table)
    table.save(stage.beside("weights.parquet"))
    return run
