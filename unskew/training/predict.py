"""One forward pass over the rows; everything else is computed from its logits."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from unskew.core import engine as processes
from unskew.core.executor import current, map_rows, on_cluster
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.methods._contract import Method
from unskew.training.frozen import Computed, is_frozen, with_features

Alter = Callable[[Tensor, Tensor], Tensor]
BATCH = 1024  # rows per forward pass; `batch_for` lowers it for large rows


def predict(
    method: Method,
    data: DataSet,
    rows: Tensor,
    *,
    workers: int = 0,
    alter: Alter | None = None,
    summary: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """(ids, logits) of these rows, in order, split over the processes or a cluster; rows that cannot be decoded are left out.

    `alter(inputs, ids)` changes inputs in [0, 1] before anything else sees them; `summary` says what is kept of a batch's logits.
    """
    if is_frozen(method.model) and alter is None and not method.reads_inputs(method.cfg):
        data = with_features(data, method.model, rows, workers)
    parameter = next(method.parameters())
    was_training = method.training
    method.eval()
    if on_cluster() and processes.world() == 1 and not isinstance(data.inputs, Computed):
        return _on_cluster(method, data, rows, alter, summary, was_training)
    if parameter.device.type == "cpu":
        processes.keep_freed_memory()
    indices, logits = [torch.zeros(0, dtype=torch.long)], []
    with torch.inference_mode():
        mine = processes.shard(rows)
        for index, x in rows_in_order(data, mine, batch_for(data), workers=workers, dtype=parameter.dtype, alter=alter):
            indices.append(index)
            said = method.predict(x.to(parameter.device)).float()
            logits.append(said if summary is None else summary(said))
    method.train(was_training)
    nothing = torch.zeros(0, len(data.classes), device=parameter.device)
    local = torch.cat(logits) if logits else nothing if summary is None else summary(nothing)
    index = processes.gather_rows(torch.cat(indices).to(parameter.device)).cpu()
    gathered = processes.gather_rows(local).cpu()
    order = index.argsort()
    return index[order], gathered[order]


def most_likely(logits: Tensor) -> Tensor:
    """(B,) the class with the largest logit."""
    return logits.argmax(1)


def predictions_frame(index: Tensor, y: Tensor, logits: Tensor) -> pl.DataFrame:
    """A table of predictions: sample ids, labels, and logits as lists; no Python object for a number.

    >>> predictions_frame(torch.tensor([4]), torch.tensor([1]), torch.tensor([[0.5, 2.0]])).rows()
    [(4, 1, [0.5, 2.0])]
    """
    return pl.DataFrame({"index": index.numpy(), "y": lists_of(y), "logits": lists_of(logits)})


def lists_of(x: Tensor) -> pl.Series:
    """Numbers, or a list of them per row, in double precision if they are fractions."""
    wide = x.cpu().double() if x.is_floating_point() else x.cpu()
    if x.ndim == 1:
        return pl.Series(wide.numpy())
    series = pl.Series(wide.flatten().numpy()).reshape((len(x), *x.shape[1:])) if x.numel() else None
    return pl.Series([], dtype=pl.List(pl.Float64)) if series is None else series.cast(pl.List(series.dtype.inner))  # type: ignore[union-attr,attr-defined,unused-ignore]


@dataclass(frozen=True)
class _Forward:
    """The logits of a part of the rows, by a worker that has the network; on its GPU if it was given one."""

    method: Method
    data: DataSet
    alter: Alter | None
    summary: Callable[[Tensor], Tensor] | None
    gpu: bool

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        device = torch.device("cuda" if self.gpu and torch.cuda.is_available() else "cpu")
        method, ids, found = self.method.to(device), [torch.zeros(0, dtype=torch.long)], []
        dtype = next(method.parameters()).dtype
        with torch.inference_mode():
            for index, x in rows_in_order(self.data, rows, batch_for(self.data), dtype=dtype, alter=self.alter):
                said = method.predict(x.to(device)).float()
                ids.append(index)
                found.append((said if self.summary is None else self.summary(said)).cpu())
        return torch.cat(ids), torch.cat(found) if found else torch.zeros(0, len(self.data.classes))


def _on_cluster(
    method: Method, data: DataSet, rows: Tensor, alter: Alter | None, summary: Callable[[Tensor], Tensor] | None, training: bool
) -> tuple[Tensor, Tensor]:
    """The same batches as in one process, sixteen to a part."""
    device = next(method.parameters()).device
    work = _Forward(method.cpu(), data, alter, summary, current().gpus > 0)
    found = list(map_rows(work, torch.split(rows, 16 * batch_for(data))))
    method.to(device).train(training)
    kept = [part for part in found if len(part[0])] or found[:1]
    index, logits = torch.cat([ids for ids, _ in kept]), torch.cat([said for _, said in kept])
    order = index.argsort()
    return index[order], logits[order]


def batch_for(data: DataSet) -> int:
    """Rows per forward pass: at most 1,024, fewer where a row is large."""
    numbers = max(1, int(torch.tensor(data.shape).prod()))
    return int(min(BATCH, max(16, 40_000_000 // numbers // 8)))
