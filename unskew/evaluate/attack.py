"""What a finished run leaks: fresh attackers on its logits, beside labels as often wrong, with noise on its embedding, and calibrated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew import progress
from unskew.data._dataset import DataSet
from unskew.errors import UserError
from unskew.evaluate.predict import predict
from unskew.evaluate.rba import rba, training_ratios
from unskew.measure.label_sets import label_sets
from unskew.measure.leakage import (
    SMALLEST,
    Amplification,
    Attack,
    LeakageCurve,
    bias_amplification,
    dataset_leakage,
    dataset_leakage_curve,
    decided,
    macro_f1,
)
from unskew.methods._base import Method
from unskew.repair.balance import balance
from unskew.rng import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageConfig:
    """What to ask beyond the leakage of the logits as they are."""

    noise: tuple[float, ...] = ()  # on the embedding, in units of its own deviation: the randomisation curve
    alpha: float = 0.0  # attack only rows in which no label has one value alpha times as often as another; 0: all rows
    rba: float = 0.0  # margin of a calibration of the decisions to the training ratios; 0: none
    attack: Attack | None = None

    def __post_init__(self) -> None:
        if not all(0 < level < math.inf for level in self.noise):
            raise UserError("noise: every level must be above 0")
        if self.alpha != 0 and not 1 <= self.alpha < math.inf:
            raise UserError(f"alpha={self.alpha:g}: must be at least 1")
        if not 0 <= self.rba < 1:
            raise UserError(f"rba={self.rba:g}: the margin must lie in (0, 1)")


def leakage_of(
    logits: Tensor,
    data: DataSet,
    index: Tensor,
    cfg: LeakageConfig,
    seed: int,
    *,
    embedding: "Embedding | None" = None,
    trained_on: DataSet | None = None,
) -> dict[str, Any]:
    """Dataset and model leakage, the first at the model's F1, and their difference, for every bias column of these rows.

    A column that cannot be attacked says why; `trained_on` is the data whose training rows give the ratios of a calibration.
    """
    if not data.bias_names:
        raise UserError(f"leakage needs a bias column and {data.name} has none; name one with --bias when training")
    found: dict[str, Any] = {}
    for k, name in enumerate(data.bias_names):
        progress.say(f"attacking {name}")
        try:
            found[name] = _one_column(logits, data, index, k, cfg, seed, embedding, trained_on or data)
        except UserError as error:
            found[name] = {"reason": f"{name}: {error}"}
    usable = [leak for leak in found.values() if "reason" not in leak]
    if not usable:
        raise UserError("; ".join(leak["reason"] for leak in found.values()))
    return {"leakage": usable[0], **({"leakage_by_bias": found} if len(found) > 1 else {})}


def _one_column(
    logits: Tensor,
    data: DataSet,
    index: Tensor,
    k: int,
    cfg: LeakageConfig,
    seed: int,
    embedding: "Embedding | None",
    trained_on: DataSet,
) -> dict[str, Any]:
    y, attribute = data.y[index], data.bias[index, k]
    kept, reached = torch.arange(len(index)), None
    if cfg.alpha:
        balanced = balance(y, attribute, alpha=cfg.alpha, seed=seed)
        if not any(ratio < math.inf for ratio in balanced.ratios):
            raise UserError("every label lacks a value of it in these rows, so none can be balanced")
        kept, reached = balanced.index, balanced.reached
    y, attribute, mine = y[kept], attribute[kept], logits[kept]
    _enough(attribute, data.bias_values[k])
    plain = dataset_leakage(y, attribute, attack=cfg.attack, seed=seed)
    more = bias_amplification(mine, y, attribute, attack=cfg.attack, seed=seed)
    found = {"bias": data.bias_names[k], "dataset": plain.value, **_told(more), "chance": plain.chance, "n": plain.n}
    found["intervals"] |= {"dataset": [plain.low, plain.high]}
    found |= {"missing": int((attribute < 0).sum()), "alpha": cfg.alpha or None, "reached": reached, "rows": len(kept)}
    if embedding is not None and cfg.noise:
        levels = [(level, embedding.noisy(level, seed)[kept]) for level in sorted(cfg.noise)]
        f1 = [_f1(noisy, y) for _, noisy in levels]
        curve = _label_curve(y, attribute, min(f1), max(f1), cfg.attack, seed)
        found["randomisation"] = [
            {
                "noise": level,
                **quality(noisy, y, seed),
                **_told(bias_amplification(noisy, y, attribute, attack=cfg.attack, seed=seed, curve=curve)),
            }
            for level, noisy in levels
        ]
    if cfg.rba:
        found["rba"] = _calibrated(mine, y, attribute, data, k, cfg, seed, trained_on)
    return found


def _enough(attribute: Tensor, values: Sequence[str]) -> None:
    """Every value that occurs must do so often enough for a balanced draw; said with its name."""
    counts = attribute[attribute >= 0].bincount(minlength=len(values))
    for count, value in zip(counts.tolist(), values, strict=True):
        if 0 < count < SMALLEST:
            raise UserError(
                f"value {value!r} has {count} rows, too rare to attack; at least {SMALLEST} are needed: "
                "name a larger --split, or leave out --leakage"
            )


def _f1(logits: Tensor, y: Tensor) -> float:
    return macro_f1(*decided(logits, y))


def _label_curve(y: Tensor, attribute: Tensor, low: float, high: float, attack: Attack | None, seed: int) -> LeakageCurve:
    """Four points over the F1 that noise runs through: every level is read off them."""
    ends = max(0.0, min(low, high) - 0.02), min(1.0, max(low, high) + 0.02)
    points = torch.linspace(*ends, 4).tolist()
    return dataset_leakage_curve(y, attribute, points, attack=attack, seed=seed)


def _told(more: Amplification) -> dict[str, Any]:
    return {
        "model": more.model.value,
        "dataset_at_f1": more.dataset_at_f1.value,
        "amplification": more.delta,
        "f1": more.f1,
        "intervals": {
            "model": [more.model.low, more.model.high],
            "dataset_at_f1": [more.dataset_at_f1.low, more.dataset_at_f1.high],
            "amplification": [more.low, more.high],
        },
        "note": more.dataset_at_f1.note,
    }


def _calibrated(
    logits: Tensor, y: Tensor, attribute: Tensor, data: DataSet, k: int, cfg: LeakageConfig, seed: int, trained_on: DataSet
) -> dict[str, Any]:
    """The run after RBA to the training rows' ratios: labels outside the margin before and after, quality, leakage."""
    name, values = data.bias_names[k], data.bias_values[k]
    known = trained_on.bias_values[trained_on.bias_index(name)]
    strange = [v for v in values if v not in known]
    if strange:
        raise UserError(f"value {strange[0]!r} does not occur in the training rows, so it has no ratio to be calibrated to")
    train = trained_on.rows("train")
    column = trained_on.bias[train, trained_on.bias_index(name)]
    ratios = training_ratios(trained_on.y[train], column, len(trained_on.classes), len(known))
    ratios = ratios[:, [known.index(v) for v in values]]  # classes are in the run's order already, values may not be
    made = rba(logits, attribute, ratios, single=not data.multi_label, margin=cfg.rba)
    more = bias_amplification(made.scores, y, attribute, attack=cfg.attack, seed=seed)
    outside = {"outside_before": made.violations[0], "outside_after": made.violations[1]}
    return {"margin": cfg.rba, **outside, **quality(made.scores, y, seed), **_told(more)}


def quality(logits: Tensor, y: Tensor, seed: int) -> dict[str, Any]:
    """What is judged beside leakage: macro F1 and mean average precision, or accuracy."""
    if y.ndim == 1:
        return {"accuracy": float((logits.argmax(1) == y).double().mean()), "f1_macro": _f1(logits, y)}
    found = label_sets(logits, y, seed=seed, draws=0)
    return {"f1_macro": found.f1, "average_precision": found.average_precision}


@dataclass(frozen=True)
class Embedding:
    """What the network's last module sees, and that module: logits with noise on the embedding need no second pass."""

    h: Tensor  # (N, D)
    output: torch.nn.Module

    def noisy(self, level: float, seed: int) -> Tensor:
        r"""Logits of h + level s eps: s is the root mean square over features of their deviation, eps standard normal."""
        scale = level * float(self.h.double().var(0).mean().sqrt())
        noise = torch.randn(self.h.shape, generator=stream(seed, "randomisation", level))
        parameter = next(self.output.parameters())
        with torch.inference_mode():
            logits: Tensor = self.output((self.h + scale * noise).to(parameter.device, parameter.dtype))
        return logits.float().cpu()


def predict_and_embed(method: Method, data: DataSet, rows: Tensor, *, workers: int = 0) -> tuple[Tensor, Tensor, Embedding]:
    """One forward pass: ids, logits, and what the last module was given."""
    output = getattr(method.model, "output", None)
    if not isinstance(output, torch.nn.Linear):
        raise UserError("noise on the embedding needs a network whose last module is linear")
    seen: list[Tensor] = []
    handle = output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().float().cpu()))
    try:
        index, logits = predict(method, data, rows, workers=workers)
    finally:
        handle.remove()
    embedding = Embedding(torch.cat(seen), output)
    with torch.inference_mode():
        parameter = next(output.parameters())
        again = output(embedding.h.to(parameter.device, parameter.dtype)).float().cpu()
    if again.shape != logits.shape or not torch.allclose(again, logits, rtol=1e-3, atol=1e-3):
        raise UserError("noise on the embedding: the run's logits are not made by its network's last module alone")
    return index, logits, embedding
