r"""independence: rows are drawn so that the class and a biased model's opinion are independent. No bias labels.

.. math::
    w_i = \frac{u_{y_i o_i}}{n_{y_i o_i}}, \qquad \sum_o u_{yo} = P(y), \quad \sum_y u_{yo} = P(o), \quad
    u_{yo} \propto P(y)\, P(o) \text{ before raking}

=====  ==================  ===================================================================================================
o      column `opinion`    the class that a biased model, not fitted on the row, would say
w      column `weight`     chance of being drawn, up to a factor; class shares stay as they are
-      column `score`      1 where opinion and class disagree: the rows that probably lack the shortcut
=====  ==================  ===================================================================================================

The biased model, in three steps. A reference: a linear layer on pretrained features (photographs) or on the vectors, or networks
trained with GCE for `steps` steps (small images, clips), each judged on rows it was not fitted on. Simple representations (colour,
border, texture, spectrum, ...) and what can never be part of the subject (a logo at the edge, the make of the camera, ...) are asked
which of them explains the reference's errors (measure explained_errors). If some do, a linear reader of these, fitted with GCE, gives
the opinion; if none does, one of the latter that tells the class all the same, or else the reference. A linear layer is then fitted
again with the weights, and what explains the errors that are left gives a further opinion, which the class is made independent of
too: balancing against one shortcut must not feed another. Weights that leave fewer than `least` effective rows are raised to a power
below 1 until they do not.

Several labels per row: an opinion for each label, and one weight that is raked until every label is independent of its own.

Source: ours; the biased model is that of Nam et al., "Learning from failure", NeurIPS 2020, the weighting that of Li and
Vasconcelos, "REPAIR", CVPR 2019, in closed form for a categorical opinion.
Differs: nothing to differ from.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.parts.opinion import Opinion, opinion_of
from unskew.repairs._contract import Outcome, Use, Work
from unskew.stats.independence import LEAST_EFFECTIVE, agreement, effective_rows, raked_weights

SPLITS = ("train",)
TRAIN = {"select.rule": "last", "data.augment": "none", "optim.name": "adamw", "optim.lr": 0.002, "train.batch": 128}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    steps: int = 150  # of each network of the reference
    folds: int = 3  # networks, each judged on a share of the rows that it was not fitted on
    least: float = LEAST_EFFECTIVE  # effective rows below which weights are tempered

    def __post_init__(self) -> None:
        if self.steps < 1 or self.folds < 2 or self.least < 1:
            raise UserError("independence: steps and least must be at least 1, folds at least 2")


def use(cfg: Config) -> Use:
    return "chance"


def apply(work: Work, cfg: Config) -> Outcome:
    data = work.data
    index, reference, features = work.reference(cfg.steps, cfg.folds)
    y = data.y[index]
    if data.multi_label:
        opinions = [
            opinion_of(data, index, column.long(), 2, logits, seed=work.seed, workers=work.workers)
            for column, logits in zip(y.unbind(1), reference.unbind(1), strict=True)
        ]
        code = torch.stack([o.code for o in opinions], 1)
        weight = tempered(raked_weights(y, code), cfg.least)
        away = (code != y.long()).double().mean(1)
        return Outcome(index, weight, away, figures=_figures(opinions, weight), representations=_sources(opinions))
    found = opinion_of(data, index, y, len(data.classes), reference, features=features, seed=work.seed, workers=work.workers)
    progress.say(found.words())
    weight = tempered(found.weight, cfg.least)
    got, free = agreement(weight, y, found.code, len(data.classes))
    figures = _figures([found], weight) | {"agreement": got, "agreement_if_independent": free, "notes": [found.words()]}
    score = (found.code != y).double()
    return Outcome(index, weight, score, figures=figures, representations=found.source, opinion=found.code)


def tempered(weight: Tensor, least: float) -> Tensor:
    """The weights, raised to the largest power up to 1 that leaves `least` effective rows."""
    if effective_rows(weight) >= min(least, len(weight)):
        return weight
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_rows(weight**middle) >= least else (low, middle)
    return weight**low / (weight**low).mean()


def _sources(opinions: list[Opinion]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for o in opinions for name in o.source))


def _figures(opinions: list[Opinion], weight: Tensor) -> dict[str, object]:
    first = opinions[0]
    return {
        "effective_rows": effective_rows(weight),
        "source": list(_sources(opinions)),
        "explained": {e.name: [e.errors.value, e.errors.low, e.errors.high] for e in first.explanations},
    }
