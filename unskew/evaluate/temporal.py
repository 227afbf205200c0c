"""How much the features of a run change when a clip is played backwards."""

from typing import Any

import torch
from torch import Tensor

from unskew.data._dataset import DataSet
from unskew.data._loader import rows_in_order
from unskew.errors import UserError
from unskew.evaluate.predict import batch_for
from unskew.measure.temporal_structure import temporal_structure_score
from unskew.methods._base import Method
from unskew.models._base import Model


def check_clips(data: DataSet) -> None:
    if len(data.shape) != 4:
        raise UserError(f"--temporal is for clips; {data.name} has inputs of shape {data.shape}")


def temporal_structure(method: Method, data: DataSet, index: Tensor, *, workers: int = 0) -> dict[str, Any]:
    """The temporal structure score of the last feature layer on these clips."""
    network = method.model
    if not isinstance(network, Model):
        raise UserError(f"temporal: {type(network).__name__} has no feature layers to read")
    parameter = next(method.parameters())
    batches = rows_in_order(data, index, batch_for(data), workers=workers, dtype=parameter.dtype)
    method.eval()
    with torch.inference_mode():
        return temporal_structure_score(network.features, (x.to(parameter.device) for _, x in batches)).json()
