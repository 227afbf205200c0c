"""One forward pass over the rows; everything else is computed from its logits."""

from collections.abc import Callable

import torch
from torch import Tensor

from unskew.core import engine as processes
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.methods._contract import Method
from unskew.training.frozen import is_frozen, with_features

BATCH = 1024  # rows per forward pass; `batch_for` lowers it for large rows


def predict(
    method: Method, data: DataSet, rows: Tensor, *, workers: int = 0, alter: Callable[[Tensor, Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """(ids, logits) of these rows, in order, split over the processes; rows that cannot be decoded are left out.

    `alter(inputs, ids)` changes inputs in [0, 1] before anything else sees them.
    """
    if is_frozen(method.model) and alter is None and not method.reads_inputs(method.cfg):
        data = with_features(data, method.model, rows, workers)
    parameter = next(method.parameters())
    was_training = method.training
    method.eval()
    if parameter.device.type == "cpu":
        processes.keep_freed_memory()
    indices, logits = [torch.zeros(0, dtype=torch.long)], []
    with torch.inference_mode():
        mine = processes.shard(rows)
        for index, x in rows_in_order(data, mine, batch_for(data), workers=workers, dtype=parameter.dtype, alter=alter):
            indices.append(index)
            logits.append(method.predict(x.to(parameter.device)).float())
    method.train(was_training)
    width = len(data.classes)
    local = torch.cat(logits) if logits else torch.zeros(0, width, device=parameter.device)
    index = processes.gather_rows(torch.cat(indices).to(parameter.device)).cpu()
    gathered = processes.gather_rows(local).cpu()
    order = index.argsort()
    return index[order], gathered[order]


def batch_for(data: DataSet) -> int:
    """Rows per forward pass: at most 1,024, fewer where a row is large."""
    numbers = max(1, int(torch.tensor(data.shape).prod()))
    return int(min(BATCH, max(16, 40_000_000 // numbers // 8)))
