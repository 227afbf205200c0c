"""One forward pass over the rows, whole or in parts; everything else is computed from its logits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import polars as pl
import torch
from torch import Tensor

from unskew.core import engine as processes
from unskew.core.executor import current, map_rows, on_cluster
from unskew.core.matrix import Column
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.methods._contract import Method
from unskew.training.frozen import Computed, is_frozen, with_features

Alter = Callable[[Tensor, Tensor], Tensor]
BATCH = 1024  # rows per forward pass; `batch_for` lowers it for large rows
TOGETHER = 16  # batches of a part
SEGMENT = 65_536  # rows whose features of a frozen network are held, where there are many


def predict(
    method: Method,
    data: DataSet,
    rows: Tensor,
    *,
    workers: int = 0,
    alter: Alter | None = None,
    summary: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """(ids, logits) of these rows, ordered by id, in memory; rows that cannot be decoded are left out.

    `alter(inputs, ids)` changes inputs in [0, 1] before anything else sees them; `summary` says what is kept of a batch's logits.
    """
    ids, said = Column(), Column()
    for index, logits in predict_parts(method, data, rows, workers=workers, alter=alter, summary=summary):
        ids.add(index)
        said.add(logits)
    order = ids.whole().argsort()
    return ids.whole()[order], said.whole()[order]


def predict_parts(
    method: Method,
    data: DataSet,
    rows: Tensor,
    *,
    workers: int = 0,
    alter: Alter | None = None,
    summary: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """(ids, logits) of these rows, part after part, split over the processes or a cluster: no more than a few parts are ever held.

    Parts are in the order of the rows, and so are the rows of a part, unless several processes share rows that are not in ascending order.
    There is always at least one part.
    """
    width = len(data.classes)
    nothing = torch.zeros(0, dtype=torch.long), torch.zeros(0, width) if summary is None else summary(torch.zeros(0, width))
    was_training, some = method.training, False
    method.eval()
    try:
        for index, logits in _parts(method, data, rows, workers, alter, summary):
            if len(index):
                some = True
                yield index, logits
        if not some:
            yield nothing
    finally:
        method.train(was_training)


def _parts(
    method: Method, data: DataSet, rows: Tensor, workers: int, alter: Alter | None, summary: Callable[[Tensor], Tensor] | None
) -> Iterator[tuple[Tensor, Tensor]]:
    if (
        is_frozen(method.model)
        and alter is None
        and not method.reads_inputs(method.cfg)
        and not isinstance(data.inputs, Computed)
    ):
        for segment in torch.split(rows, SEGMENT) if len(rows) > 4 * SEGMENT else [rows]:  # their features are in memory
            known = with_features(data, method.model, segment, workers)
            yield from _here(method, known, segment, workers, alter, summary)
    elif on_cluster() and processes.world() == 1 and not isinstance(data.inputs, Computed):
        yield from _on_cluster(method, data, rows, alter, summary)
    else:
        yield from _here(method, data, rows, workers, alter, summary)


def _here(
    method: Method, data: DataSet, rows: Tensor, workers: int, alter: Alter | None, summary: Callable[[Tensor], Tensor] | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """This process's batches, sixteen to a part; of several processes, the parts of all of them together."""
    parameter, size = next(method.parameters()), batch_for(data)
    if parameter.device.type == "cpu":
        processes.keep_freed_memory()
    mine = processes.shard(rows)
    batches = _forward(method, data, mine, size, workers, alter, summary)
    if processes.world() == 1:
        while part := list(islice(batches, TOGETHER)):
            yield torch.cat([ids for ids, _ in part]), torch.cat([said for _, said in part]).cpu()
        return
    # The k-th share of every process together is the k-th share of the rows, so that parts come in the order of the rows.
    ascending = bool((rows.diff() > 0).all())
    shares = torch.split(rows, TOGETHER * size * processes.world() if ascending else max(1, len(rows)))
    ahead = next(batches, None)
    empty = torch.zeros(0, len(data.classes), device=parameter.device)
    for share in shares:
        part, last = [], int(share.max()) if len(share) else -1
        while ahead is not None and (not ascending or int(ahead[0][0]) <= last):
            part.append(ahead)
            ahead = next(batches, None)
        ids = torch.cat([torch.zeros(0, dtype=torch.long), *(ids for ids, _ in part)])
        said = torch.cat([said for _, said in part]) if part else empty if summary is None else summary(empty)
        index = processes.gather_rows(ids.to(parameter.device)).cpu()
        order = index.argsort()
        yield index[order], processes.gather_rows(said).cpu()[order]


def _forward(
    method: Method,
    data: DataSet,
    rows: Tensor,
    size: int,
    workers: int,
    alter: Alter | None,
    summary: Callable[[Tensor], Tensor] | None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """(ids, logits) batch by batch. Whoever asks for them between two batches is not in inference mode."""
    parameter = next(method.parameters())
    batches = rows_in_order(data, rows, size, workers=workers, dtype=parameter.dtype, alter=alter)
    while True:
        with torch.inference_mode():
            index, x = next(batches, (None, None))
            if index is None or x is None:
                return
            said = method.predict(x.to(parameter.device)).float()
            said = said if summary is None else summary(said)
        yield index, said


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
    method: Method, data: DataSet, rows: Tensor, alter: Alter | None, summary: Callable[[Tensor], Tensor] | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches as in one process, sixteen to a part, in order."""
    device = next(method.parameters()).device
    work = _Forward(method.cpu(), data, alter, summary, current().gpus > 0)
    try:
        yield from map_rows(work, torch.split(rows, TOGETHER * batch_for(data)))
    finally:
        method.to(device)


def batch_for(data: DataSet) -> int:
    """Rows per forward pass: at most 1,024, fewer where a row is large."""
    numbers = max(1, int(torch.tensor(data.shape).prod()))
    return int(min(BATCH, max(16, 40_000_000 // numbers // 8)))
