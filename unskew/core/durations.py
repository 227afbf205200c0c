"""Durations as people write them, turned into steps in one place; steps are the only unit after that."""

import re

from unskew.core.errors import UserError

_FORM = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(epochs?|steps?|percent|%)\s*", re.IGNORECASE)


def check_duration(text: str, name: str) -> None:
    """Reject a bad duration before reading data or training."""
    steps_of(text, 1, 1, name)


def steps_of(text: str, steps_per_epoch: int, total: int, name: str = "duration") -> int:
    """`3 epochs`, `2000 steps`, `10 percent` or `10%` of the whole run, as a number of steps.

    >>> steps_of("2 epochs", 100, 1000), steps_of("7 steps", 100, 1000), steps_of("10%", 100, 1000)
    (200, 7, 100)
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UserError(f"{name}={text!r}: write it as '3 epochs', '2000 steps' or '10 percent'")
    number, unit = float(match[1]), match[2].lower()
    if unit.startswith("epoch"):
        return round(number * steps_per_epoch)
    if unit.startswith("step"):
        return round(number)
    return round(number / 100 * total)
