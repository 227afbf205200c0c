r"""leakage: can the bias be guessed from a model's logits, and better than from labels that are wrong as often?

.. math::  \Delta = \lambda_M - \lambda_D(a), \qquad a = F_1 \text{ of the model}

New attackers are trained from scratch, whatever the model was trained against: on one part of the judged rows, and tested on
another, or with `fit_on=train` as the authors do: on the rows that the model was trained on, chosen on the validation split and
tested on the judged rows. Accuracies below chance are reported as they are; `Attack(protocol="code")` folds them. `noise` repeats
the attack with Gaussian noise on the embedding, `alpha` attacks an alpha-balanced subset of the rows,
`rba` repeats the attack after calibrating the decisions. Labels that are a value of the bias itself (a model that predicts the gender
too) are left out: attackers see the other logits, and F1 is theirs. Directional amplification (measure `directional_amplification`)
is given beside Delta: from task to bias, and from bias to task.

Source: Wang et al., "Balanced datasets are not enough", ICCV 2019 (leakage, amplification, randomisation); Zhao et al., "Men also
like shopping", EMNLP 2017 (RBA).
Differs: `fit_on=train` takes logits of training rows without random crops; for the rest, see the card of the measure `leakage`
and stats/rba.py.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.evaluation._contract import Embedding, Judged
from unskew.measure.directional_amplification import directional_amplification
from unskew.measure.label_sets import label_sets, other_labels
from unskew.measure.leakage import (
    Amplification,
    Attack,
    LeakageCurve,
    bias_amplification,
    dataset_leakage,
    dataset_leakage_curve,
)
from unskew.repairs.balance import balance
from unskew.stats.f1 import decided, macro_f1
from unskew.stats.rba import rba, training_ratios
from unskew.stats.splits import PARTS, SMALLEST
from unskew.training.predict import predict

KEYS = ("leakage", "leakage_by_bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to ask beyond the leakage of the logits as they are."""

    leakage: bool = False  # attack the logits
    noise: tuple[float, ...] = ()  # noise on the embedding, in units of its standard deviation
    alpha: float = 0.0  # attack an alpha-balanced subset of the rows; 0: all rows
    rba: float = 0.0  # margin for calibrating decisions to the training ratios; 0: none
    attack: Attack | None = None  # settings of the attackers
    fit_on: Literal["judged", "train"] = "judged"  # judged: a part of the judged rows; train: the model's training rows

    def __post_init__(self) -> None:
        if self.fit_on not in ("judged", "train"):
            raise UserError(f"fit_on={self.fit_on}: must be one of judged, train")
        if self.fit_on == "train" and (self.noise or self.alpha or self.rba):
            raise UserError("noise, alpha and rba attack the judged rows alone: leave out fit_on=train")
        if not all(0 < level < math.inf for level in self.noise):
            raise UserError("noise: every level must be above 0")
        if self.alpha != 0 and not 1 <= self.alpha < math.inf:
            raise UserError(f"alpha={self.alpha:g}: must be at least 1")
        if not 0 <= self.rba < 1:
            raise UserError(f"rba={self.rba:g}: the margin must lie in (0, 1)")
        folds = self.attack is not None and self.attack.protocol == "code"
        if (self.noise or self.alpha or self.rba) and not self.leakage:
            raise UserError("noise, alpha and rba need --leakage")
        if (self.fit_on == "train" or folds) and not self.leakage:
            raise UserError("fit_on and protocol need --leakage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Quality beside leakage: accuracy, or mean average precision if multi-label, and macro F1."""

    f1_macro: float
    accuracy: float | None = None
    average_precision: float | None = None

    def json(self) -> dict[str, Any]:
        known = {"accuracy": self.accuracy, "f1_macro": self.f1_macro, "average_precision": self.average_precision}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How well the bias can be guessed from logits, and from labels that are wrong as often."""

    model: float
    dataset_at_f1: float
    amplification: float
    f1: float
    intervals: dict[str, list[float]]
    note: str  # why the two were measured at different F1, if they were

    @classmethod
    def of(cls, more: Amplification) -> "Told":
        intervals = {
            "model": [more.model.low, more.model.high],
            "dataset_at_f1": [more.dataset_at_f1.low, more.dataset_at_f1.high],
            "amplification": [more.low, more.high],
        }
        return cls(
            model=more.model.value, dataset_at_f1=more.dataset_at_f1.value, amplification=more.delta, f1=more.f1,
            intervals=intervals, note=more.dataset_at_f1.note,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """Quality and leakage with noise on the embedding."""

    noise: float
    quality: Quality
    told: Told

    def json(self) -> dict[str, Any]:
        return {"noise": self.noise, **self.quality.json(), **dataclasses.asdict(self.told)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Quality and leakage after RBA to the ratios of the training rows."""

    margin: float
    outside_before: int  # labels outside the margin
    outside_after: int
    quality: Quality
    told: Told

    def json(self) -> dict[str, Any]:
        outside = {"outside_before": self.outside_before, "outside_after": self.outside_after}
        return {"margin": self.margin, **outside, **self.quality.json(), **dataclasses.asdict(self.told)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What attackers found for one bias column."""

    bias: str
    dataset: float  # from the true labels
    model: float  # from the logits
    dataset_at_f1: float  # from labels wrong as often as the model
    amplification: float
    f1: float
    average_precision: float  # mean over labels, or over classes by their probabilities
    intervals: dict[str, list[float]]
    note: str
    chance: float
    n: int
    missing: int  # rows without a bias value
    alpha: float | None
    reached: float | None  # the largest ratio left in an alpha-balanced subset
    rows: int
    left_out: tuple[str, ...] = ()  # labels that are the bias itself, which attackers do not see
    dpa_to_bias: float = math.nan  # directional amplification: the bias told by the logits
    dpa_to_task: float = math.nan  # the decisions told by the bias
    protocol: str = "paper"  # code: folded about one half
    fit_on: str = "judged"
    attacker: str = "network"  # on the true labels: network, or table of counts; logits are always read by networks
    randomisation: tuple[Noisy, ...] = ()
    rba: Calibration | None = None

    def json(self) -> dict[str, Any]:
        table = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("randomisation", "rba")}
        if self.randomisation:
            table["randomisation"] = [noisy.json() for noisy in self.randomisation]
        if self.rba is not None:
            table["rba"] = self.rba.json()
        return table


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a bias column could not be attacked."""

    reason: str

    def json(self) -> dict[str, Any]:
        return {"reason": self.reason}


@dataclass(frozen=True, slots=True)
class Leaks:
    """The answer: a record for every bias column."""

    by_bias: dict[str, Record | Refused]

    def json(self) -> dict[str, Any]:
        first = next(answer for answer in self.by_bias.values() if isinstance(answer, Record))
        every = (
            {"leakage_by_bias": {name: answer.json() for name, answer in self.by_bias.items()}} if len(self.by_bias) > 1 else {}
        )
        return {"leakage": first.json(), **every}


def ask(judged: Judged, options: Options) -> Leaks:
    if options.fit_on == "train":
        index, logits, parts = _with_training_rows(judged)
        return leakage_of(logits, judged.data, index, options, judged.seed, parts=parts)
    embedding = judged.embedding if options.noise else None
    return leakage_of(
        judged.logits, judged.data, judged.index, options, judged.seed, embedding=embedding, trained_on=judged.trained_on
    )


def _with_training_rows(judged: Judged) -> tuple[Tensor, Tensor, Tensor]:
    """Ids and logits of the rows to fit on, to choose on and to judge, and which of the three each is."""
    data = judged.data
    if judged.trained_on() is not data:
        raise UserError("fit_on=train needs the data that the run was trained on: leave out --on")
    train = data.rows("train")
    held = torch.zeros(len(train), dtype=torch.bool)
    held[3::4] = not data.has("val")  # no validation split: every fourth training row
    rows = {"train": train[~held], "val": data.rows("val") if data.has("val") else train[held], "test": judged.index}
    if bool(torch.isin(judged.index, torch.cat([rows["train"], rows["val"]])).any()):
        raise UserError("fit_on=train judges rows that were not trained on: choose another --split than train or val")
    index, logits = predict(judged.method, data, torch.cat([rows["train"], rows["val"]]), workers=judged.workers)
    everything = torch.cat([index, judged.index])
    parts = torch.cat([torch.full((len(rows[name]),), k) for k, name in enumerate(PARTS)])
    known = torch.isin(torch.cat(list(rows.values())), everything)  # rows that cannot be decoded have no logits
    return everything, torch.cat([logits, judged.logits]), parts[known]


def leakage_of(
    logits: Tensor,
    data: DataSet,
    index: Tensor,
    options: Options,
    seed: int,
    *,
    embedding: Embedding | None = None,
    trained_on: Callable[[], DataSet] | None = None,
    parts: Tensor | None = None,
) -> Leaks:
    """Dataset and model leakage, the first at the model's F1, and their difference, for every bias column of these rows.

    A column that cannot be attacked gets a reason instead; the training rows of `trained_on` set the ratios for `rba`.
    """
    if not data.bias_names:
        raise UserError(f"leakage needs a bias column and {data.name} has none; name one with --bias when training")
    by_bias: dict[str, Record | Refused] = {}
    for k, name in enumerate(data.bias_names):
        progress.say(f"attacking {name}")
        try:
            by_bias[name] = _one_column(logits, data, index, k, options, seed, embedding, trained_on or (lambda: data), parts)
        except UserError as error:
            by_bias[name] = Refused(f"{name}: {error}")
    if all(isinstance(leak, Refused) for leak in by_bias.values()):
        raise UserError("; ".join(leak.reason for leak in by_bias.values() if isinstance(leak, Refused)))
    return Leaks(by_bias)


def _one_column(
    logits: Tensor,
    data: DataSet,
    index: Tensor,
    k: int,
    options: Options,
    seed: int,
    embedding: Embedding | None,
    trained_on: Callable[[], DataSet],
    parts: Tensor | None,
) -> Record:
    y, attribute = data.y[index], data.bias[index, k]
    asked = other_labels(y, attribute)
    left_out: tuple[str, ...] = ()
    if asked is not None:  # the model predicts the bias too: what is asked is whether the other labels tell it
        left_out = tuple(name for place, name in enumerate(data.classes) if place not in set(asked.tolist()))
        y, logits = y[:, asked], logits[:, asked]
    kept, reached = torch.arange(len(index)), None
    if options.alpha:
        balanced = balance(y, attribute, alpha=options.alpha, seed=seed)
        if not any(ratio < math.inf for ratio in balanced.ratios):
            raise UserError("no label has rows with every bias value, so none can be balanced")
        kept, reached = balanced.index, balanced.reached
    y, attribute, mine = y[kept], attribute[kept], logits[kept]
    _enough(attribute, data.bias_values[k])
    plain = dataset_leakage(y, attribute, attack=options.attack, seed=seed, parts=parts)
    more = bias_amplification(mine, y, attribute, attack=options.attack, seed=seed, parts=parts)
    leak, dpa = Told.of(more), directional_amplification(mine, y, attribute, seed=seed, more=more, parts=parts)
    randomised: tuple[Noisy, ...] = ()
    if embedding is not None and options.noise:
        randomised = _randomised(embedding, kept, asked, y, attribute, options, seed)
    calibrated = _calibrated(mine, asked, y, attribute, data, k, options, seed, trained_on()) if options.rba else None
    fields = {f.name: getattr(leak, f.name) for f in dataclasses.fields(leak)}
    ways = {"dpa_to_bias": dpa.to_bias, "dpa_to_task": dpa.to_task}
    fields["intervals"] = leak.intervals | {"dataset": [plain.low, plain.high]} | {n: [d.low, d.high] for n, d in ways.items()}
    return Record(
        **fields, average_precision=precision(mine, y, seed), dpa_to_bias=dpa.to_bias.value, dpa_to_task=dpa.to_task.value,
        bias=data.bias_names[k], dataset=plain.value, chance=plain.chance, n=plain.n,
        missing=int((attribute < 0).sum()), alpha=options.alpha or None, reached=reached, rows=len(kept),
        left_out=left_out, protocol=(options.attack or Attack()).protocol, fit_on=options.fit_on, attacker=plain.attacker,
        randomisation=randomised, rba=calibrated,
    )  # fmt: skip


def _randomised(
    embedding: Embedding, kept: Tensor, asked: Tensor | None, y: Tensor, attribute: Tensor, options: Options, seed: int
) -> tuple[Noisy, ...]:
    def of_others(noisy: Tensor) -> Tensor:
        return noisy if asked is None else noisy[:, asked]

    levels = [(level, of_others(noisy_logits(embedding, level, seed)[kept])) for level in sorted(options.noise)]
    f1 = [macro_f1(*decided(noisy, y)) for _, noisy in levels]
    curve = _label_curve(y, attribute, min(f1), max(f1), options.attack, seed)
    return tuple(
        Noisy(
            noise=level,
            quality=quality(noisy, y, seed),
            told=Told.of(bias_amplification(noisy, y, attribute, attack=options.attack, seed=seed, curve=curve)),
        )
        for level, noisy in levels
    )


def noisy_logits(embedding: Embedding, level: float, seed: int) -> Tensor:
    r"""Logits of h + level s eps: s is the root mean square over features of their deviation, eps standard normal."""
    scale = level * float(embedding.h.double().var(0).mean().sqrt())
    noise = torch.randn(embedding.h.shape, generator=stream(seed, "randomisation", level))
    return embedding.logits(embedding.h + scale * noise)


def _enough(attribute: Tensor, values: Sequence[str]) -> None:
    """Raises if a value that occurs has too few rows for a balanced draw."""
    counts = attribute[attribute >= 0].bincount(minlength=len(values))
    for count, value in zip(counts.tolist(), values, strict=True):
        if 0 < count < SMALLEST:
            raise UserError(
                f"value {value!r} has {count} rows, too few to attack; at least {SMALLEST} are needed: "
                "choose a larger --split, or leave out --leakage"
            )


def _label_curve(y: Tensor, attribute: Tensor, low: float, high: float, attack: Attack | None, seed: int) -> LeakageCurve:
    """The leakage of labels at four points over the range of F1; every noise level is interpolated from it."""
    ends = max(0.0, min(low, high) - 0.02), min(1.0, max(low, high) + 0.02)
    points = torch.linspace(*ends, 4).tolist()
    networks = dataclasses.replace(attack or Attack(), attacker="network")  # as on the logits
    return dataset_leakage_curve(y, attribute, points, attack=networks, seed=seed)


def _calibrated(
    logits: Tensor,
    asked: Tensor | None,
    y: Tensor,
    attribute: Tensor,
    data: DataSet,
    k: int,
    options: Options,
    seed: int,
    trained_on: DataSet,
) -> Calibration:
    """Labels outside the margin before and after RBA to the ratios of the training rows, and quality and leakage after it."""
    name, values = data.bias_names[k], data.bias_values[k]
    known = trained_on.bias_values[trained_on.bias_index(name)]
    unknown = [v for v in values if v not in known]
    if unknown:
        raise UserError(f"value {unknown[0]!r} does not occur in the training rows, so there is no ratio to calibrate it to")
    train = trained_on.rows("train")
    column = trained_on.bias[train, trained_on.bias_index(name)]
    labels = trained_on.y[train] if asked is None else trained_on.y[train][:, asked]
    ratios = training_ratios(labels, column, len(trained_on.classes) if asked is None else len(asked), len(known))
    ratios = ratios[:, [known.index(v) for v in values]]  # classes are already in the run's order, values may not be
    calibrated = rba(logits, attribute, ratios, single=not data.multi_label, margin=options.rba)
    more = bias_amplification(calibrated.scores, y, attribute, attack=options.attack, seed=seed)
    before, after = calibrated.violations
    return Calibration(
        margin=options.rba,
        outside_before=before,
        outside_after=after,
        quality=quality(calibrated.scores, y, seed),
        told=Told.of(more),
    )


def precision(logits: Tensor, y: Tensor, seed: int) -> float:
    """Mean average precision: over labels, or over classes, each against the rest, by the softmax."""
    if y.ndim == 1:
        y, logits = torch.nn.functional.one_hot(y, logits.shape[1]), logits.log_softmax(1)
    return label_sets(logits, y, seed=seed, draws=0).average_precision


def quality(logits: Tensor, y: Tensor, seed: int) -> Quality:
    """Accuracy, or mean average precision if multi-label, and macro F1."""
    if y.ndim == 1:
        return Quality(accuracy=float((logits.argmax(1) == y).double().mean()), f1_macro=macro_f1(*decided(logits, y)))
    figures = label_sets(logits, y, seed=seed, draws=0)
    return Quality(f1_macro=figures.f1, average_precision=figures.average_precision)
