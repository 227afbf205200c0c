r"""overlap: what one reader of the class tells beyond another.

.. math::
    A(\phi \mid \phi') = \frac{R(\phi') - R(\phi', \phi)}{H(Y)}

R is the held-out cross-entropy, in nats, of a linear reader of the log-probabilities that readers of phi' alone, or of phi' and phi,
give the row; H the entropy of the class. 0: phi tells nothing that phi' does not. The readers are given by the logits they have for
rows that they were not fitted on, so a pair costs a regression on 2 C numbers a row, however wide the representations are.

The other way to ask: once class and the opinion of phi' are independent under weights w, how much can still be read from phi?

.. math::
    L(\phi \mid \phi') = 1 - \frac{R_w(\phi)}{H_w(Y)}

Source: ours; stacking is Wolpert, "Stacked generalization", 1992.
Differs: nothing to differ from.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.stats.independence import independence_weights
from unskew.stats.readers import held_out_logits, with_constant

DECAY = 1e-3


def overlap(logits: Tensor, other: Tensor, y: Tensor, *, seed: int = 0) -> float:
    """What the reader with held-out `logits` (n, C) tells of the class beyond the one with logits `other`.

    >>> y = torch.arange(400) % 2
    >>> sure = 4.0 * F.one_hot(y, 2)
    >>> round(overlap(sure, sure, y), 2)
    0.0
    >>> round(overlap(sure, torch.zeros(400, 2), y), 1)
    1.0
    """
    if not logits.shape == other.shape or len(logits) != len(y):
        raise UserError(f"logits of shapes {tuple(logits.shape)} and {tuple(other.shape)} for {len(y)} labels: must fit")
    classes = logits.shape[1]
    share = y.bincount(minlength=classes).double() / len(y)
    entropy = -float((share[share > 0] * share[share > 0].log()).sum())
    if entropy <= 0:
        return math.nan
    first = _risk([other], y, classes, seed)
    return max(0.0, (first - _risk([other, logits], y, classes, seed)) / entropy)


def left_over(logits: Tensor, other: Tensor, y: Tensor, *, seed: int = 0) -> float:
    """How much of the class the reader with held-out `logits` still tells once the class is independent of the other's opinion.

    >>> y = torch.arange(400) % 2
    >>> opinion = torch.where(torch.arange(400) % 10 < 2, 1 - y, y)  # wrong in a fifth of the rows
    >>> round(left_over(F.one_hot(opinion, 2).float(), F.one_hot(opinion, 2).float(), y), 2)
    0.0
    """
    classes = logits.shape[1]
    weight = independence_weights(y, other.argmax(1), classes)
    share = torch.zeros(classes, dtype=torch.float64).index_add_(0, y, weight) / len(y)
    entropy = -float((share[share > 0] * share[share > 0].log()).sum())
    return max(0.0, 1 - _risk([logits], y, classes, seed, weight) / entropy) if entropy > 0 else math.nan


def _risk(blocks: list[Tensor], y: Tensor, classes: int, seed: int, weight: Tensor | None = None) -> float:
    """Held-out cross-entropy of a reader of these log-probabilities."""
    x = with_constant(torch.cat([b.double().log_softmax(1).clamp(min=-20).float() for b in blocks], 1))
    w = torch.ones(len(y), dtype=torch.float64) if weight is None else weight
    loss = F.cross_entropy(held_out_logits(x, y, classes, (DECAY,), weight=w, seed=seed)[0], y, reduction="none")
    return float((w * loss.double()).sum() / w.sum())


FUNCTIONS = (overlap, left_over)
RANGE = (0.0, 1.0)
HIGHER = "the representation tells more of the class that the other does not"
