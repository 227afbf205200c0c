r"""Temporal structure score: how much a model's features of a clip change when the clip is played backwards.

.. math::  T = \frac1N \sum_i \lVert f(x_i) - f(\bar x_i) \rVert_2, \qquad \bar x_i = x_i \text{ with its frames reversed}

0 for a model that averages over single frames; the larger, the more order matters.

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2 (Table 3: 64-frame clips of Something-Something V2).
Differs: nothing; as in the paper, scores compare only within one model family, since features have no common scale.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.records import Estimate
from unskew.stats.intervals import Z95


def temporal_structure_score(features: Callable[[Tensor], Tensor], clips: Iterable[Tensor]) -> Estimate:
    """The score of `features` over batches of clips (B, T, C, H, W), with a normal 95 % interval.

    >>> temporal_structure_score(lambda x: x.mean(1).flatten(1), [torch.rand(4, 8, 3, 2, 2)]).value < 1e-6
    True
    """
    distances = []
    with torch.no_grad():
        for batch in clips:
            if batch.ndim != 5:
                raise UserError(f"clips must have shape (B, T, C, H, W), got {tuple(batch.shape)}")
            forward, backward = features(batch).flatten(1), features(batch.flip(1)).flatten(1)
            distances.append((forward - backward).double().norm(dim=1))
    if not distances:
        raise UserError("temporal structure needs at least one clip")
    distance = torch.cat(distances)
    error = Z95 * float(distance.std()) / len(distance) ** 0.5 if len(distance) > 1 else float("nan")
    mean = float(distance.mean())
    return Estimate(mean, mean - error, mean + error, len(distance))


FUNCTIONS = (temporal_structure_score,)
RANGE = (0.0, math.inf)
HIGHER = "features depend more on the order of frames"
