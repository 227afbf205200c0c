"""What `auto` tries on a data set: methods whose contract fits its kind of data, with settings from what the audit named.

The order is that of the budget: where time is short, the last ones are left out. `cost` is what a method costs beside erm, roughly,
until it has been measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unskew.core import config
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data.dataset import DataSet
from unskew.methods import _contract as methods
from unskew.stats.removal import REMOVES
from unskew.training.defaults import choose
from unskew.training.settings import run_config
from unskew.training.simple import linear_default

LINEAR = ("", "frozen", "linear")  # networks whose last layer alone is fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A method with its settings."""

    name: str
    method: str = ""  # where it is not the name
    settings: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0  # seconds beside those of erm, roughly
    solved: bool = False  # without steps: trained in full at once
    tabled: bool = False  # its weights of the rows do not depend on the length of the training


@dataclass(frozen=True, slots=True)
class Question:
    """What decides whether a method fits: the data, what the audit named, and the network that was asked for."""

    data: DataSet
    named: Sequence[str]
    model: str


def candidates(data: DataSet, named: Sequence[str], model: str = "") -> tuple[list[Candidate], dict[str, str]]:
    """The candidates in order, erm first, and why other methods do not fit."""
    asked = Question(data, named, model)
    fit, left = [], {}
    for name, make in _MAKERS.items():
        try:
            one = make(asked)
            _check(one, data)
        except UserError as error:
            left[name] = str(error)
        else:
            fit.append(one)
    return fit, left


def plain_training(data: DataSet, model: str = "") -> list[Candidate]:
    """Plain training, without any remedy: erm; and, where only a last layer learns, its optimum, which is often better."""
    fits = not data.multi_label and model in LINEAR and linear_default(data)
    optimum = Candidate(name="plain", method="last_layer", settings={"weights": "plain"}, solved=True)
    return [Candidate(name="erm"), *([optimum] if fits else [])]


def _check(one: Candidate, data: DataSet) -> None:
    """Raise if the method's own contract refuses the data."""
    loaded = methods.load(one.name)
    cfg = loaded.settings(dict(one.settings))
    if loaded.method is None:
        if data.multi_label and one.name != "independence":
            raise UserError("needs one class per row")
        return
    if data.multi_label and not loaded.method.multi_label:
        raise UserError("needs one class per row")
    loaded.method.check(cfg, data)


def _last_layer(asked: Question) -> Candidate:
    if asked.model not in LINEAR or not linear_default(asked.data):
        raise UserError("fits only a last layer; here a whole network learns")
    return Candidate(name="last_layer", settings={"weights": "opinion"}, cost=1.5, solved=True)


def _neutralise(asked: Question) -> Candidate:
    kinds = [name.partition(":")[0] for name in asked.named]
    kind = next((kind for kind in kinds if kind in REMOVES), "")
    if not kind:
        gone = f"no change of the inputs removes {' or '.join(asked.named)}"
        raise UserError(gone if kinds else "the audit named nothing to neutralise")
    frozen = asked.model in LINEAR and linear_default(asked.data)
    return Candidate(name="neutralise", settings={"what": REMOVES[kind]}, cost=8.0 if frozen else 1.5)


def _repair(asked: Question) -> Candidate:
    if not asked.named:
        raise UserError("the audit named no representation to weigh the rows by")
    return Candidate(name="repair", settings={"phi": asked.named[0]}, cost=2.0, tabled=True)


def _pgd(asked: Question) -> Candidate:
    return Candidate(name="pgd", settings={"augment": "none"} if len(asked.data.shape) == 1 else {}, cost=3.0)


_MAKERS: dict[str, Callable[[Question], Candidate]] = {
    "erm": lambda asked: Candidate(name="erm"),
    "last_layer": _last_layer,
    "independence": lambda asked: Candidate(name="independence", cost=2.0, tabled=True),
    "neutralise": _neutralise,
    "repair": _repair,
    "ccdb": lambda asked: Candidate(name="ccdb", cost=2.0),
    "pgd": _pgd,
    "jtt": lambda asked: Candidate(name="jtt", cost=1.5),
}


def shortened(one: Candidate, share: float, data: DataSet, given: Settings, model: str) -> dict[str, Any]:
    """Settings that train a candidate for a share of its steps."""
    if one.solved or share == 1:
        return {}
    asked = run_config(given).train
    if asked.steps:
        return {"train.steps": max(1, round(share * asked.steps))}
    if model or "epochs" in given["train"]:
        return {"train.epochs": share * asked.epochs}
    final = methods.load(one.name).method or methods.method_class("erm")  # the last stage of several
    cfg: Any = config.build(final.Config, dict(one.settings) if methods.load(one.name).method else {}, "method.")
    chosen = choose(data, final, cfg, asked.tune, int(given["train"].get("batch", 0)), weighted=True)
    return {"train.steps": max(1, round(share * int(chosen.settings["train.steps"])))}
