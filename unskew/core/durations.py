"""Durations as people write them, turned into steps or seconds in one place."""

import re

from unskew.core.errors import UserError

_TIME = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(s|sec|seconds?|m|min|minutes?|h|hours?)\s*", re.IGNORECASE)
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


def seconds_of(text: str, name: str) -> float:
    """`90s`, `30min` or `2 hours` as seconds.

    >>> seconds_of("90s", "budget"), seconds_of("30 min", "budget"), seconds_of("1.5h", "budget")
    (90.0, 1800.0, 5400.0)
    """
    match = _TIME.fullmatch(text)
    if match is None or float(match[1]) <= 0:
        raise UserError(f"{name} {text[:40]!r}: write it as 90s, 30min or 2h, above 0")
    return float(match[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[match[2][0].lower()]


def time_in_words(seconds: float) -> str:
    """Seconds as people write them.

    >>> time_in_words(42.4), time_in_words(400), time_in_words(9000)
    ('42 s', '7 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
