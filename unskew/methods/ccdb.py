r"""ccdb: rows are drawn so that, within every class, a biased model's opinion is distributed as it is over all rows.

.. math::
    w_i = \frac{q_{o_i}}{P_{y_i o_i}\, M_{y_i}}, \qquad P_{yo} = \frac{M_{yo}}{M_y}, \qquad q_o = \frac1n \sum_y M_{yo}

    f_k = \arg\min \sum_{i \in S_k} \mathrm{CE}(f_k(x_i), y_i), \qquad S_1 = \text{all rows}, \quad
    S_{k+1} = \{ i \in S_1 : \arg\max f_k(x_i) = y_i \}

=====  ===================  ====================================================================================================
M      `confusion`          rows of class y that the last of the biased models f_k calls o; M_y its rows of class y
o      column `opinion`     what that model says: it never saw the rows that lack the shortcut, so it names the shortcut's value
P      -                    distribution of the opinion within a class
q      -                    its distribution over all rows
S_k    `stages`             rows the k-th biased model is trained on: those that the one before calls correctly
=====  ===================  ====================================================================================================

`scale=class` gives every class the same total and every class the same distribution of opinions. `scale=cell` divides by the cell's
rows M_yo instead of M_y, which gives rare cells a larger total than common ones. A cell without rows leaves its share to the others
of its class. Weights that leave fewer than `least` effective rows are tempered.

Stages: biased models into OUT-biased1, OUT-biased2, ...; the weights into OUT-weights.parquet; `erm` on rows drawn with chances w.

Source: after Zhao and Zhang, "Fine-grained class-conditional distribution balancing for debiased learning", ICLR 2026, from memory:
only its abstract could be read.
Differs: the biased models are trained for `steps` steps with GCE; rows are drawn with chances w instead of weighted in the loss.
"""

from dataclasses import dataclass
from typing import Literal

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.methods._contract import Stage
from unskew.records import Run, Table
from unskew.repairs.independence import tempered
from unskew.stats.independence import LEAST_EFFECTIVE, agreement, effective_rows

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    stages: int = 2  # biased models, each trained on the rows that the one before calls correctly
    steps: int = 300  # of each biased model
    q: float = 0.7  # exponent of its GCE
    scale: Literal["class", "cell"] = "class"  # what the ratio q / P is divided by: rows of the class, or of the cell
    least: float = LEAST_EFFECTIVE  # effective rows below which weights are tempered

    def __post_init__(self) -> None:
        if self.stages < 1 or self.steps < 1 or self.least < 1:
            raise UserError("ccdb: stages, steps and least must be at least 1")
        if not 0 < self.q <= 1:
            raise UserError(f"ccdb: q={self.q:g} must lie in (0, 1]")


def train(stage: Stage, cfg: Config) -> Run:
    data = stage.data()
    if data.multi_label:
        raise UserError("ccdb needs one class per row, but this task has several labels per row; use independence")
    index, opinion = selective_retraining(stage, cfg)
    y, classes = data.y[index], len(data.classes)
    weight = tempered(balancing_weights(y, opinion, classes, cfg.scale), cfg.least)
    got, free = agreement(weight, y, opinion, classes)
    progress.say(
        f"ccdb: {int((opinion != y).sum())} of {len(y)} training rows contradict the biased model; under the weights class and "
        f"opinion agree on {100 * got:.0f} % (independent: {100 * free:.0f} %), {effective_rows(weight):.0f} effective rows"
    )
    table = Table(
        pl.DataFrame({"index": index.numpy(), "weight": weight.numpy(), "opinion": opinion.numpy()}),
        {"name": "ccdb", "fingerprint": data.fingerprint, "use": "chance", "scale": cfg.scale},
    )
    run = stage.run(stage.out, "erm", {"train.weights": "chance"}, weights=table)
    table.save(stage.beside("weights.parquet"))
    return run


def selective_retraining(stage: Stage, cfg: Config) -> tuple[Tensor, Tensor]:
    """(ids, opinions) of the training rows: each biased model learns from the rows that the one before calls correctly."""
    data = stage.data()
    short = {"train.steps": cfg.steps, "select.rule": "last", "select.patience": 0, "q": cfg.q}
    short |= {} if stage.frozen else {"data.augment": "none"}
    kept: Table | None = None
    for k in range(cfg.stages):
        run = stage.run(stage.beside(f"biased{k + 1}"), "gce", short, weights=kept)
        index, logits = stage.predict(run, "train")
        opinion = logits.argmax(1)
        correct = opinion == data.y[index]
        if not bool(correct.any()) or k + 1 == cfg.stages:
            break
        inside = pl.DataFrame({"index": index.numpy(), "weight": correct.double().numpy()})
        kept = Table(inside, {"name": "ccdb", "fingerprint": data.fingerprint, "use": "keep"})
    return index, opinion


def confusion(y: Tensor, opinion: Tensor, classes: int) -> Tensor:
    """(C, C) rows of each class that the biased model calls each class.

    >>> confusion(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return (y * classes + opinion).bincount(minlength=classes**2).double().view(classes, classes)


def balancing_weights(y: Tensor, opinion: Tensor, classes: int, scale: str = "class") -> Tensor:
    r"""A weight per row, mean 1, under which the opinion is distributed alike in every class.

    .. math::  w_i = \frac{q_o}{P_{yo} M_y} \quad\text{or}\quad \frac{q_o}{P_{yo} M_{yo}}

    >>> y, o = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([0, 0, 0, 1, 1, 0])
    >>> [round(w, 3) for w in balancing_weights(y, o, 2).tolist()]
    [0.667, 0.667, 0.667, 1.0, 1.0, 2.0]
    """
    counts = confusion(y, opinion, classes)
    rows = counts.sum(1, keepdim=True)
    q = counts.sum(0) / counts.sum()
    # An empty cell leaves its share of q to the other cells of its class.
    share = torch.where(counts > 0, q, 0.0)
    share = share / share.sum(1, keepdim=True).clamp(min=1e-300)
    ratio = share / (counts / rows.clamp(min=1)).clamp(min=1e-300)
    cell = ratio / (rows if scale == "class" else counts).clamp(min=1)
    weight = cell[y, opinion]
    return weight / weight.mean()
