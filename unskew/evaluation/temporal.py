r"""temporal: how much the features of a run change when a clip is played backwards.

.. math::  T = \frac1N \sum_i \lVert \phi(x_i) - \phi(\bar x_i) \rVert

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2.
Differs: see the card of the measure `temporal_structure`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.evaluation._contract import Judged
from unskew.measure.temporal_structure import temporal_structure_score
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.records import Estimate
from unskew.training.predict import batch_for

KEYS = ("temporal",)
SHARES = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    temporal: bool = False  # play clips backwards


@dataclass(frozen=True, slots=True)
class Record:
    value: float
    estimate: Estimate

    def json(self) -> dict[str, Any]:
        return {"temporal": self.estimate.json()}


def check(data: DataSet, options: Options) -> None:
    if len(data.shape) != 4:
        raise UserError(f"--temporal needs clips; {data.name} has inputs of shape {data.shape}")


def ask(judged: Judged, options: Options) -> Record:
    estimate = temporal_structure(judged.method, judged.data, judged.index, workers=judged.workers)
    return Record(estimate.value, estimate)


def temporal_structure(method: Method, data: DataSet, index: Tensor, *, workers: int = 0) -> Estimate:
    """The temporal structure score of the last feature layer on these clips."""
    network = method.model
    if not isinstance(network, Model):
        raise UserError(f"temporal: {type(network).__name__} has no feature layers to read")
    parameter = next(method.parameters())
    batches = rows_in_order(data, index, batch_for(data), workers=workers, dtype=parameter.dtype)
    method.eval()
    with torch.inference_mode():
        return temporal_structure_score(network.features, (x.to(parameter.device) for _, x in batches))
