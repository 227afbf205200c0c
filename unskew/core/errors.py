"""The one error a user is meant to read."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """The request or the input is wrong. One line: what was got, where, what is allowed, what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))


def suggest(name: str, allowed: Iterable[str]) -> str:
    """The tail of an error about an unknown name: the nearest one, or all of them.

    >>> suggest("erv", ["erm", "lff"])
    "; did you mean 'erm'?"
    >>> suggest("zzz", ["erm", "lff"])
    '; there are: erm, lff'
    """
    known = sorted(allowed)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {', '.join(known)}" if known else "; there are none"
