"""What is kept of the logits of many rows: a few numbers each, or, where rows have several labels, a file of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.fetch import cache
from unskew.core.matrix import Rows, Spill, only
from unskew.data.dataset import DataSet

HELD = 2**26  # bytes of logits in memory where rows have several labels; more are in a file, deleted with the process


@dataclass(frozen=True, slots=True)
class Answers:
    """A run's predictions on some rows."""

    index: Tensor  # sample ids
    said: Rows  # (n,) the predicted class; of rows with several labels (n, L) their logits
    sure: Tensor | None  # (n,) its probability, in double precision; None with several labels

    def only(self, rows: Tensor) -> "Answers":
        """Those of some rows, by a mask."""
        return Answers(self.index[rows], only(self.said, rows), None if self.sure is None else self.sure[rows])


def answers_of(parts: Iterable[tuple[Tensor, Tensor]], data: DataSet) -> Answers:
    """From (ids, logits) of one part of the rows after another."""
    return _label_answers(parts, data) if data.multi_label else _class_answers(parts)


def _class_answers(parts: Iterable[tuple[Tensor, Tensor]]) -> Answers:
    index, said, sure = (
        [torch.zeros(0, dtype=torch.long)],
        [torch.zeros(0, dtype=torch.long)],
        [torch.zeros(0, dtype=torch.float64)],
    )
    for ids, logits in parts:
        index.append(ids)
        said.append(logits.argmax(1))
        sure.append(logits.double().softmax(1).amax(1))
    return Answers(torch.cat(index), torch.cat(said), torch.cat(sure))


def _label_answers(parts: Iterable[tuple[Tensor, Tensor]], data: DataSet) -> Answers:
    index, held = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, len(data.classes))]
    spill: Spill | None = None
    try:
        for ids, logits in parts:
            index.append(ids)
            held.append(logits.float())
            if spill is not None or 4 * sum(block.numel() for block in held) > HELD:
                spill = spill or Spill(cache() / "logits")
                spill.add(torch.cat(held))
                held = []
    except BaseException:
        if spill is not None:
            spill.drop()
        raise
    return Answers(torch.cat(index), torch.cat(held) if spill is None else spill.matrix(), None)
