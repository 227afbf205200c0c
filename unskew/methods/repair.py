r"""REPAIR, then training: rows are kept by weights that make the shortcut hard to read, and a model learns from them.

.. math::
    w = \arg\min_w \max_\theta V(w, \theta), \qquad S = \mathrm{select}(w), \qquad
    f = \arg\min \sum_{i \in S} \mathrm{CE}(f(x_i), y_i)

The reader theta is linear on a representation, `phi` or what an audit finds first: the repair `repair` writes OUT-weights.parquet.
With `reader=network` it is a whole network on the images: the method `repair_game`, trained into OUT-game (or the run named by
`game`), gives the weights of the rows. Either way rows are kept by `strategy` (threshold, rank, class_rank, sample, uniform: -T,
-R, -PR, -S and the control) and `erm` trains on them into OUT, for as many steps as on all rows. With `strategy=weights` (default) no
row is lost: batches are drawn from all rows with probability in proportion to their weights, which is `sample` drawn anew for every
batch.

Each time a row is drawn, its weight changes by about lr_weights / batch times its loss. REPAIR's schedule, 200 epochs at 10 with
batches of 128, is often longer than the training of a network; `lr_weights=none` compensates, so that weights change as much:

.. math::  \gamma_w = \frac{200 \cdot 10}{128} \cdot \frac{\text{batch}}{\text{epochs}}

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.1; with an image network and `sample`, as the PGD submission ran it
(see the card of pgd).
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
    strategy: Literal["threshold", "rank", "class_rank", "sample", "uniform", "weights"] = "weights"  # which rows to keep or draw
    reader: Literal["linear", "network"] = "linear"  # who plays against the weights: a linear reader of phi, or a whole network
    phi: tuple[str, ...] = ()  # representations for the linear reader; empty: what an audit finds first
    scale: Literal["unit", "none"] = "unit"  # features of the linear reader: standardised, or as they are
    game: str = ""  # a finished run of repair_game
    keep: float = 0.5  # share of the rows, for rank, class_rank and uniform
    lr_weights: float | None = None  # learning rate of the weights; none: as above, or with phi the repair's default
    epochs: int | None = None  # epochs of the linear reader's game; none: the repair's default

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", whole_names(self.phi))
        if not 0 < self.keep <= 1 or (self.lr_weights is not None and self.lr_weights <= 0):
            raise UserError("repair: keep must lie in (0, 1] and lr_weights must be above 0")
        if self.game:
            object.__setattr__(self, "reader", "network")
        if self.reader == "network" and (self.phi or self.epochs is not None):
            raise UserError("repair: phi and epochs are for reader=linear; with reader=network, set train.epochs")
        if self.game and self.lr_weights is not None:
            raise UserError("repair: game names a finished run; leave out lr_weights, which is for a new one")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("repair needs one class per row, but this task has several labels per row")
    drawn = {"train.weights": "chance"} if cfg.strategy == "weights" else {}
    if drawn and stage.given.get("train.weights", "chance") not in ("chance", "sampler"):
        raise UserError("repair: strategy=weights draws rows by their weights; leave out train.weights")
    if cfg.reader == "linear":
        game = {k: v for k, v in {"lr_weights": cfg.lr_weights, "epochs": cfg.epochs}.items() if v is not None}
        given = {"phi": ",".join(cfg.phi), "strategy": cfg.strategy, "keep": cfg.keep, "scale": cfg.scale, **game}
        return stage.run(stage.out, "erm", drawn, weights=stage.repair(stage.beside("weights.parquet"), "repair", given))
    rows = data.rows("train")
    if cfg.game:
        game_run = Run(Path(cfg.game))
        if game_run.config["config"]["method_name"] != "repair_game" or not data.is_source(game_run.config["fingerprint"]):
            raise UserError(f"game={cfg.game} is not a run of repair_game on this source")
    else:
        rate = cfg.lr_weights or rate_of_weights(stage.budget, len(rows))
        plain = {} if stage.frozen else {"data.augment": "none"}  # only the final model is augmented
        last = {"select.rule": "last", "select.patience": 0, "lr_weights": rate, **plain}
        game_run = stage.run(stage.beside("game"), "repair_game", last)
    w = stage.buffer(game_run, "omega").float().sigmoid()[rows]
    if cfg.strategy == "weights":
        weight = w
    else:
        kept = select(w, data.y[rows], cfg.strategy, keep=cfg.keep, seed=stage.seed)
        check_kept(kept, data.y[rows], data.classes, f"strategy={cfg.strategy}")
        weight = torch.zeros(len(rows))
        weight[kept] = 1
    table = Table(
        pl.DataFrame({"index": rows.numpy(), "weight": weight.numpy(), "score": w.numpy()}),
        {"name": "repair", "fingerprint": data.fingerprint, "run": str(game_run.path), "strategy": cfg.strategy},
    )
    run = stage.run(stage.out, "erm", drawn, weights=table)
    table.save(stage.beside("weights.parquet"))  # last, so that a refused request keeps the table of the existing run
    return run


def rate_of_weights(budget: Budget, rows: int) -> float:
    """The learning rate at which a row's weight can change as much as in REPAIR's 200 epochs at 10 with batches of 128."""
    visits = budget.steps * budget.batch / rows if budget.steps else budget.epochs
    return 200 * 10 / 128 * budget.batch / visits
