r"""cross_dataset: average precision on another source, over the classes that it shares with the run.

.. math::  AP_c = \sum_k (R_k - R_{k-1}) P_k, \qquad \text{per shared class } c \text{, and their mean}

Source: Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2 (Table 2).
Differs: see the card of the measure `cross_dataset`.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from unskew.evaluation._contract import Judged
from unskew.measure.cross_dataset import CrossDataset, cross_dataset

KEYS = ("cross_dataset",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    shared_classes: bool = False  # judge only the classes that both have


@dataclass(frozen=True, slots=True)
class Record:
    mean: float
    ranked: CrossDataset

    def json(self) -> dict[str, Any]:
        return {"cross_dataset": dataclasses.asdict(self.ranked)}


def ask(judged: Judged, options: Options) -> Record:
    ranked = cross_dataset(judged.logits, judged.data.classes, judged.data.y[judged.index], judged.data.classes)
    return Record(ranked.mean, ranked)
