r"""erasure: what a run is worth, and what still leaks, with the bias erased in closed form from what its last layer reads.

.. math::  z = W\, r(h) + b, \qquad \mathrm{Cov}\big(r(h), a\big) = 0

=======  ==================================================================================================================
h        input of the network's last layer; r is fitted on training rows, at most 10,000, with their bias values
leace    r moves h as little as possible
splince  also keeps the covariance of h and the labels
=======  ==================================================================================================================

Reported with and without: macro F1 and accuracy on the judged rows, and the class-balanced accuracy there of linear readers of the
bias: fitted on the training rows, where the guarantee holds exactly (`before`, `after`), and fitted on the judged rows themselves,
each judged on rows that it was not fitted on (`fresh`): what r, estimated on other rows, leaves. All see h on one scale. With
`--leakage`, attackers also read the erased logits. Rows without a bias value are not fitted on.

Source: Belrose et al., "LEACE: perfect linear concept erasure in closed form", NeurIPS 2023; Holstege, Ravfogel, Wouters,
"Preserving task-relevant information under linear concept removal", NeurIPS 2025.
Differs: one erasure, at the last layer; several bias columns are erased together.
"""

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.core.errors import UserError, suggest
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.evaluation._contract import Judged, embed
from unskew.evaluation.leakage import Leaks, leakage_of
from unskew.evaluation.leakage import Options as LeakageOptions
from unskew.measure.leakage import Attack
from unskew.nn.erase import Erase
from unskew.stats.erasure import Eraser, leace, splince
from unskew.stats.f1 import decided, macro_f1
from unskew.stats.intervals import mean_of_proportions
from unskew.stats.readers import class_balanced, held_out_logits
from unskew.stats.softmax import fit_softmax
from unskew.training.predict import predict

KEYS = ("erasure",)
MOST = 10_000  # training rows that it is fitted on
DECAY = 1e-2  # of the linear readers
KINDS = ("leace", "splince")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    erase: str = ""  # leace or splince
    leakage: bool = False  # also attack the erased logits
    attack: Attack | None = None  # settings of the attackers

    def __post_init__(self) -> None:
        if self.erase and self.erase not in KINDS:
            raise UserError(f"erase={self.erase}: must be one of {', '.join(KINDS)}{suggest(self.erase, KINDS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How well linear readers tell one bias column, before and after."""

    bias: str
    chance: float
    before: tuple[float, float, float]  # value, low, high
    after: tuple[float, float, float]
    fresh: tuple[float, float, float]  # after, by readers fitted on other rows than the eraser

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A run with its bias erased."""

    kind: str
    removed: int  # directions
    kept: int  # directions of the task whose covariance is kept
    f1_before: float
    f1: float
    accuracy_before: float
    accuracy: float  # of several labels per row: share of right labels
    reader_before: float  # of the first bias column
    reader: float
    chance: float
    seconds: float  # of fitting
    rows: int  # fitted on
    readings: tuple[Reading, ...]
    leakage: Leaks | None = None

    def json(self) -> dict[str, Any]:
        flat = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("readings", "leakage")}
        more = {} if self.leakage is None else self.leakage.json()
        return {"erasure": {**flat, "readings": [r.json() for r in self.readings], **more}}


def check(data: DataSet, options: Options) -> None:
    if not data.bias_names:
        raise UserError(f"--erase needs a bias column and {data.name} has none; name one with --bias when training")


def ask(judged: Judged, options: Options) -> Record:
    own = judged.trained_on()
    if any(name not in own.bias_names for name in judged.data.bias_names):
        raise UserError(f"--erase needs the bias columns {', '.join(judged.data.bias_names)} on the training rows too")
    own = own.only_bias(judged.data.bias_names)
    rows = own.rows("train")
    rows = rows[(own.bias[rows] >= 0).all(1)]
    if len(rows) < 2:
        raise UserError("--erase: no training row has a value in every bias column")
    rows = rows[torch.randperm(len(rows), generator=stream(judged.seed, "erasure"))[:MOST]].sort().values
    index, logits = predict(judged.method, own, rows, workers=judged.workers)
    h = embed(judged.method, own, index, logits, judged.workers).h
    started = time.perf_counter()
    eraser = fit_eraser(options.erase, h, own, index)
    seconds = time.perf_counter() - started
    before, layer = judged.embedding.h, torch.nn.Sequential(Erase.of(eraser), judged.embedding.output)
    erased = dataclasses.replace(judged.embedding, output=layer).logits(before)
    y = judged.data.y[judged.index]
    after = eraser(before)
    rows_of = (judged.data, judged.index), (own, index)
    readings = tuple(_reading(*rows_of, k, (before, h), (after, eraser(h)), judged.seed) for k in range(len(own.bias_names)))
    leaks = None
    if options.leakage:
        leaks = leakage_of(erased, judged.data, judged.index, LeakageOptions(leakage=True, attack=options.attack), judged.seed)
    return Record(
        kind=options.erase, removed=eraser.removed, kept=eraser.kept, f1_before=macro_f1(*decided(judged.logits, y)),
        f1=macro_f1(*decided(erased, y)), accuracy_before=_accuracy(judged.logits, y), accuracy=_accuracy(erased, y),
        reader_before=readings[0].before[0], reader=readings[0].after[0], chance=readings[0].chance, seconds=seconds,
        rows=len(index), readings=readings, leakage=leaks,
    )  # fmt: skip


def fit_eraser(kind: str, h: Tensor, data: DataSet, index: Tensor) -> Eraser:
    """The map fitted on these rows' features; all bias columns are one concept."""
    columns = [(c[:, None] == torch.arange(size)).double() for c, size in zip(data.bias[index].T, data.bias_sizes, strict=True)]
    concept = torch.cat(columns, 1)
    return leace(h, concept) if kind == "leace" else splince(h, concept, data.y[index])


def _accuracy(logits: Tensor, y: Tensor) -> float:
    guess, truth = decided(logits, y)
    return float((guess == truth).all(1).double().mean() if y.ndim == 1 else (guess == truth).double().mean())


Rows = tuple[DataSet, Tensor]


def _reading(
    judged: Rows, fitted: Rows, k: int, before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor], seed: int
) -> Reading:
    """Linear readers of one column; each pair of features is that of the judged rows and of the training rows."""
    data, index = judged
    own, train = fitted
    known = (data.bias[index, k] >= 0).nonzero().flatten()
    present, code = torch.unique(data.bias[index[known], k], return_inverse=True)
    if len(present) < 2:
        raise UserError(f"--erase: the judged rows have only one value of {data.bias_names[k]}")
    names = [data.bias_values[k][int(v)] for v in present]
    there = torch.tensor([names.index(v) if v in names else -1 for v in own.bias_values[k]])
    target = there[own.bias[train, k]]
    mine = (target >= 0).nonzero().flatten()
    scores = []
    for h, learnt in (before, after):
        x, z = _one_scale(learnt[mine], h[known])
        weight = class_balanced(target[mine])
        share = (weight / weight.sum())[:, None].to(x)
        w = fit_softmax(x, target[mine][:, None], share, (DECAY,), len(names), tolerance=1e-6)[0, 0]
        scores.append(_accuracy_by_value(z @ w, code))
    x, _ = _one_scale(after[0][known], after[0][known])
    fresh = held_out_logits(x, code, len(names), (DECAY,), weight=class_balanced(code), seed=seed)[0]
    return Reading(
        bias=data.bias_names[k], chance=1 / len(names), before=scores[0], after=scores[1], fresh=_accuracy_by_value(fresh, code)
    )


def _one_scale(learnt: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Both centred by the first and divided by one number, after a column of ones.

    One by one, numbers that hardly vary would be blown up, and show mainly how far the two sets of rows differ.
    """
    mean = learnt.double().mean(0)
    scale = (learnt.double() - mean).square().mean().sqrt().clamp(min=1e-12)
    first, second = (torch.cat([t.new_ones(len(t), 1).double(), (t.double() - mean) / scale], 1) for t in (learnt, h))
    return first, second


def _accuracy_by_value(logits: Tensor, code: Tensor) -> tuple[float, float, float]:
    """Class-balanced accuracy and its interval."""
    right = logits.argmax(1) == code
    groups = [code == v for v in range(int(code.max()) + 1)]
    return mean_of_proportions([float(right[g].sum()) for g in groups], [int(g.sum()) for g in groups])
