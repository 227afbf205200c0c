"""What a tag tells: its leakage and association with the label, as `unskew audit --bias TAG` has them, and accuracy by group."""

import threading
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.files import plain
from unskew.data.attach import attach
from unskew.data.dataset import DataSet
from unskew.explore.looks import Looks, Seen
from unskew.explore.opened import Opened, Predicted
from unskew.explore.tags import Tags
from unskew.parts.opinion import reference_logits
from unskew.stats.sample import stratified
from unskew.training.judge import judge
from unskew.verbs.audit import audited_rows, column_finding, without_rare_classes

SIMPLE = "a simple model on features"
MOST = 2000  # rows that the simple model is fitted on


@dataclass
class Measures:
    """Figures of tags; the simple model is fitted once for all of them."""

    opened: Opened
    tags: Tags
    looks: Looks
    _simple: tuple[int, Predicted | None] = (-1, None)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, name: str) -> dict[str, Any]:
        """Association, leakage and accuracy by group of one tag, each with its interval, or the reason why there is none."""
        self.tags.hand(name)  # raises if there is no such tag
        data = attach(self.opened.data, [f"{self.tags.path}:{name}"])
        index = _audited(data, self.looks.seen)
        found = column_finding(data, name, index, None, 0, None).json()
        models = [self._accuracy(one, data) for one in self.opened.runs]
        simple = self._reference()
        models += [self._accuracy(simple, data)] if simple is not None else []
        return {
            "tag": name,
            "rows": len(index),
            **plain(found),
            "models": models,
            "aligned": data.aligned_in_words().get(name, ""),
        }

    def _accuracy(self, one: Predicted, data: DataSet) -> dict[str, Any]:
        try:
            return {"name": one.name, **plain(judge(one.logits, data, one.index).json())}
        except UserError as error:
            return {"name": one.name, "reason": str(error)}

    def _reference(self) -> Predicted | None:
        """Held-out answers of a simple linear model, where features and one class per row allow it."""
        data, seen = self.opened.data, self.looks.seen
        if seen is None or data.multi_label or self.opened.runs:
            return None
        with self._lock:
            if self._simple[0] != self.looks.version:
                self._simple = (self.looks.version, _simple_model(data, seen))
            return self._simple[1]


def _audited(data: DataSet, seen: Seen | None) -> Tensor:
    """The rows that an audit measures: readable, of classes with enough rows, and no test rows that were given as such."""
    rows = audited_rows(data)
    broken = torch.tensor([k for k, _ in data.unreadable], dtype=torch.long)
    rows = rows[~torch.isin(rows, broken)]
    if seen is not None and len(seen.index) > len(data) - max(1, len(data) // 20):  # all rows were looked at: the others failed
        rows = rows[torch.isin(rows, seen.index)]
    return without_rare_classes(data, rows, {})[1]


def _simple_model(data: DataSet, seen: Seen) -> Predicted | None:
    picked = stratified(data.y[seen.index], MOST)
    x = torch.cat([block[picked, 1:] for block in seen.blocks.values()], 1)
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)
    rows = seen.index[picked]
    if len(torch.unique(data.y[rows])) < 2:
        return None
    return Predicted(SIMPLE, rows, reference_logits(x, data.y[rows], len(data.classes)))
