"""Optimisers and schedules. The learning rate is a function of the step, so a schedule has no state to save."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from unskew.core.durations import check_duration, steps_of
from unskew.core.errors import UserError
from unskew.training.adamp import AdamP


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimConfig:
    name: Literal["sgd", "adam", "adamw", "adamp"] = "adam"  # optimiser
    lr: float = 0.001  # learning rate
    momentum: float = 0.9  # momentum of sgd; the others ignore it
    weight_decay: float = 0.0  # added to the gradient by sgd and adam, decoupled from it by adamw and adamp
    betas: tuple[float, ...] = (0.9, 0.999)  # decay rates of the running averages; adam, adamw and adamp
    schedule: Literal["constant", "step", "milestones", "cosine"] = "constant"  # how the learning rate changes
    decay: float = 0.1  # factor on the learning rate at each decay
    every: str = "20 epochs"  # interval between decays; schedule=step only
    milestones: tuple[str, ...] = ()  # when to decay, e.g. 40%, 60%, 80%; schedule=milestones only
    warmup: str = "0 steps"  # linear rise of the learning rate at the start

    def __post_init__(self) -> None:
        for name in ("every", "warmup"):
            check_duration(getattr(self, name), f"optim.{name}")
        for milestone in self.milestones:
            check_duration(milestone, "optim.milestones")
        if self.lr <= 0:
            raise UserError(f"optim.lr={self.lr}: must be above 0")
        if self.weight_decay < 0 or not 0 <= self.momentum < 1:
            raise UserError("optim.weight_decay must not be negative, optim.momentum must lie in [0, 1)")
        if self.decay <= 0:
            raise UserError(f"optim.decay={self.decay}: must be above 0")
        if len(self.betas) != 2 or not all(0 <= b < 1 for b in self.betas):
            raise UserError(f"optim.betas={self.betas}: must be two numbers in [0, 1)")
        if self.schedule == "milestones" and not self.milestones:
            raise UserError("optim.schedule=milestones needs optim.milestones, e.g. optim.milestones=40%,60%,80%")


def make_optimizer(parameters: Sequence[nn.Parameter], cfg: OptimConfig) -> Optimizer:
    common: dict[str, Any] = {"lr": cfg.lr, "weight_decay": cfg.weight_decay}
    if cfg.name == "sgd":
        return torch.optim.SGD(parameters, momentum=cfg.momentum, **common)
    common["betas"] = (cfg.betas[0], cfg.betas[1])
    if cfg.name == "adamw":
        return torch.optim.AdamW(parameters, **common)
    if cfg.name == "adamp":
        return AdamP(parameters, **common)
    return torch.optim.Adam(parameters, **common)


def schedule_factor(cfg: OptimConfig, step: int, total: int, steps_per_epoch: int) -> float:
    r"""The factor on the learning rate at a step.

    .. math::  \text{step: } d^{\lfloor s / k \rfloor}, \qquad
               \text{milestones: } d^{\#\{m \le s\}}, \qquad
               \text{cosine: } \tfrac12 (1 + \cos \pi s / S)

    times (s + 1) / w during a warm-up of w steps.

    >>> schedule_factor(OptimConfig(schedule="cosine"), 50, 100, 10)
    0.5
    >>> schedule_factor(OptimConfig(schedule="milestones", milestones=("40%", "80%")), 90, 100, 10)
    0.010000000000000002
    """
    warm = steps_of(cfg.warmup, steps_per_epoch, total, "optim.warmup")
    factor = (step + 1) / warm if step < warm else 1.0
    if cfg.schedule == "step":
        every = steps_of(cfg.every, steps_per_epoch, total, "optim.every")
        if every < 1:
            raise UserError(f"optim.every={cfg.every}: must be at least one step")
        return factor * float(cfg.decay ** (step // every))
    if cfg.schedule == "milestones":
        passed = sum(steps_of(m, steps_per_epoch, total, "optim.milestones") <= step for m in cfg.milestones)
        return factor * float(cfg.decay**passed)
    if cfg.schedule == "cosine":
        return factor * 0.5 * (1 + math.cos(math.pi * step / max(total, 1)))
    return factor
