"""Everything that decides what a run computes, from settings as users write them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unskew.core import config, registry
from unskew.core.errors import UserError, suggest
from unskew.core.settings import Settings
from unskew.data.reading import DataConfig
from unskew.methods import _contract as methods
from unskew.models import _contract as models
from unskew.training.fit import TrainConfig
from unskew.training.optim import OptimConfig
from unskew.training.selection import SelectConfig

BEFORE = {"denoise": "clean", "balance": "balanced"}  # repairs that can run before a method, and the names of their tables


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides what a run computes."""

    method_name: str = "erm"
    model_name: str = ""
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    model: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)


def run_config(settings: Settings, **given: Any) -> RunConfig:
    """The settings of one training; its network and method check their own."""
    parts = {name: settings[name] for name in ("data", "optim", "train", "select") if settings[name]}
    built = config.build(RunConfig, parts | given)
    return dataclasses.replace(built, model=settings["model"], method=dict(settings.own))


def split_method(name: str) -> tuple[str, str]:
    """Split `denoise+lff` into the repair that runs first and the method.

    >>> split_method("denoise+lff"), split_method("lff")
    (('denoise', 'lff'), ('', 'lff'))
    """
    before, plus, method = name.partition("+")
    if not plus:
        return "", name
    if before not in BEFORE or not method or "+" in method:
        raise UserError(f"method {name}: only {' or '.join(BEFORE)} can come before a method, as in denoise+lff")
    return before, method


def check_method(name: str) -> methods.TrainingMethod:
    """The method of this name, or an error that lists the others."""
    if "." not in name and not registry.is_known("methods", name):
        raise UserError(f"no method {name!r}{suggest(name, registry.names('methods'))}")
    return methods.load(name)


def check_training(name: str, model: str, values: Mapping[str, Any], one_stage: bool = False) -> None:
    """Reject an unknown name or a bad setting of a method or a network before any work is done."""
    settings = Settings.of(values)
    before, method = ("", name) if one_stage else split_method(name)
    if before:
        inner, settings = settings.under(before)
        repair_settings(before, inner.own)
    run_config(settings)
    chosen = check_method(method)
    if one_stage and chosen.staged:
        raise UserError(f"method {method!r} has several stages; a method of one stage is needed here")
    chosen.settings(settings.own)
    if model:
        config.build(models.load(model).config, settings["model"], "model.")


def repair_settings(name: str, given: Mapping[str, Any]) -> None:
    """Reject a bad setting of a repair. Repairs are imported here only, so that other trainings do without them."""
    config.build(registry.module("repairs", name).Config, dict(given), f"{name}.")
