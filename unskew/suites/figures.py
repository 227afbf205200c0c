"""Figures that a suite may report: their names, which of them are shares, and the questions that answer them."""

import dataclasses
import typing
from typing import Any

from unskew.core import config
from unskew.evaluation._contract import Question, questions
from unskew.records import AVERAGES, HALF_SUM

FIGURES = {*AVERAGES, HALF_SUM, "f1_macro", "average_precision"}  # always in evaluate's JSON
COST = "cost"  # a column of this name is the ratio of seconds to the baseline's, not a figure of evaluate
STAGES = {  # figures of a run's repairs, by the first part of the column's name
    "repair": ("bias_before", "bias_after", "kept"),
    "kept": ("clean_aligned", "clean_conflicting", "noisy_aligned", "noisy_conflicting"),
}
NUMBERS = {"beta", *(f"{part}.{name}" for part, names in STAGES.items() for name in names)}  # figures that are not shares


def arguments() -> dict[str, Any]:
    """The arguments of evaluate that a suite may set, from the questions' own options: name and type."""
    return {"on": str, **{name: hint for question in questions() for name, hint in question.arguments.items()}}


def argument(name: str, value: Any) -> Any:
    """Convert a value of a suite's `evaluate` for evaluate: a table becomes a record, a list a tuple."""
    hint = arguments()[name]
    record = next((part for part in typing.get_args(hint) if dataclasses.is_dataclass(part)), None)
    if isinstance(value, dict) and record is not None:
        return config.build(typing.cast("type[Any]", record), value, f"{name}.")
    return config.read(value, hint, name)


def toml_type(hint: Any) -> type:
    """The type that TOML gives a value of this kind."""
    if any(dataclasses.is_dataclass(part) for part in typing.get_args(hint)):
        return dict
    kinds: dict[Any, type] = {tuple: list, typing.Literal: str}
    return kinds.get(typing.get_origin(hint), typing.cast("type", hint))


def answers() -> dict[str, Question]:
    """The question behind every key of evaluate's JSON that has one."""
    return {key: question for question in questions() for key in question.keys}


def is_number(figure: str) -> bool:
    """Whether a figure is shown as it is, not in per cent."""
    part = figure.partition(".")[0]
    return figure in NUMBERS or any(part in question.keys and not question.shares for question in questions())


def shown(figure: str, value: float) -> float:
    """A figure as tables show it: shares in per cent."""
    return value if is_number(figure) else 100 * value
