r"""REPAIR, then training: rows are kept by weights that leave little to be read, and a model learns from them.

.. math::
    w = \arg\min_w \max_\theta V(w, \theta), \qquad S = \mathrm{select}(w), \qquad
    f = \arg\min \sum_{i \in S} \mathrm{CE}(f(x_i), y_i)

Without `phi` the reader theta is a whole network on the images: the method `repair_game` into OUT-game (or the run named by `game`),
whose weights of the rows are taken. With `phi` it is linear on a representation, by the repair `repair` into OUT-weights.parquet.
Either way rows are kept by `strategy` (threshold, rank, class_rank, sample, uniform: -T, -R, -PR, -S and the control) and `erm`
trains on them into OUT. With `strategy=weights` no row is lost: batches are drawn from all rows, each with chance in proportion to
its weight, which is `sample` drawn anew in every batch.

A row's weight moves by about lr_weights / batch times its loss each time that it is drawn. REPAIR's own schedule, 200 epochs at 10 with
batches of 128, is often longer than a training of the network; `lr_weights=none` makes up for it, so that weights travel as far:

.. math::  \gamma_w = \frac{200 \cdot 10}{128} \cdot \frac{\text{batch}}{\text{epochs}}

Source: Li and Vasconcelos, "REPAIR", CVPR 2019; with an image network and `sample` as Ahn and Yun, ICLR 2022 submission, ran it.
Differs: only training rows are weighted. See the cards of repair_game and of the repair.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
import torch

from unskew.core.config import whole_names
from unskew.core.errors import UserError
from unskew.methods._contract import Budget, Stage
from unskew.records import Run, Table
from unskew.stats.select import check_kept, select


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    strategy: Literal["threshold", "rank", "class_rank", "sample", "uniform", "weights"] = "sample"  # weights: rows drawn by them
    phi: tuple[str, ...] = ()  # representations for a linear reader; none: a network on the inputs
    game: str = ""  # a finished run of repair_game
    keep: float = 0.5  # share of the rows, for rank, class_rank and uniform
    lr_weights: float | None = None  # none: as above, or with phi the repair's own
    epochs: int | None = None  # of the linear reader's game; none: the repair's own. A network's game has those of its training

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", whole_names(self.phi))
        if not 0 < self.keep <= 1 or (self.lr_weights is not None and self.lr_weights <= 0):
            raise UserError("repair: keep must lie in (0, 1] and lr_weights be above 0")
        if self.epochs is not None and not self.phi:
            raise UserError("repair: epochs are of the game with phi; without it they are train.epochs")
        if self.game and (self.phi or self.lr_weights is not None):
            raise UserError("repair: game names a finished game; leave out phi and lr_weights, which are of one that is played")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("repair needs one class per row, this task has several labels")
    drawn = {"train.weights": "chance"} if cfg.strategy == "weights" else {}
    if drawn and stage.given.get("train.weights", "chance") not in ("chance", "sampler"):
        raise UserError("repair: strategy=weights draws rows by their weights; leave out train.weights")
    if cfg.phi:
        game = {k: v for k, v in {"lr_weights": cfg.lr_weights, "epochs": cfg.epochs}.items() if v is not None}
        given = {"phi": ",".join(cfg.phi), "strategy": cfg.strategy, "keep": cfg.keep, **game}
        return stage.run(stage.out, "erm", drawn, weights=stage.repair(stage.beside("weights.parquet"), "repair", given))
    rows = data.rows("train")
    if cfg.game:
        played = Run(Path(cfg.game))
        if played.config["config"]["method_name"] != "repair_game" or not data.is_source(played.config["fingerprint"]):
            raise UserError(f"game={cfg.game} is not a run of repair_game on this source")
    else:
        speed = cfg.lr_weights or rate_of_weights(stage.budget, len(rows))
        last = {"select.rule": "last", "select.patience": 0, "lr_weights": speed}
        played = stage.run(stage.beside("game"), "repair_game", last)
    w = stage.buffer(played, "omega").float().sigmoid()[rows]
    if cfg.strategy == "weights":
        weight = w
    else:
        kept = select(w, data.y[rows], cfg.strategy, keep=cfg.keep, seed=stage.seed)
        check_kept(kept, data.y[rows], data.classes, f"strategy={cfg.strategy}")
        weight = torch.zeros(len(rows))
        weight[kept] = 1
    table = Table(
        pl.DataFrame({"index": rows.numpy(), "weight": weight.numpy(), "score": w.numpy()}),
        {"name": "repair", "fingerprint": data.fingerprint, "run": str(played.path), "strategy": cfg.strategy},
    )
    made = stage.run(stage.out, "erm", drawn, weights=table)
    table.save(stage.beside("weights.parquet"))  # last: a request that is refused leaves the table of the run that is there
    return made


def rate_of_weights(budget: Budget, rows: int) -> float:
    """The learning rate with which a row's weight can travel as far as in REPAIR's 200 epochs at 10 with batches of 128."""
    visits = budget.steps * budget.batch / rows if budget.steps else budget.epochs
    return 200 * 10 / 128 * budget.batch / visits
