"""The one error meant for users."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """The request or the input is wrong. One line: what is wrong, where, what is allowed, what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))


def suggest(name: str, allowed: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest one, or all of them.

    >>> suggest("erv", ["erm", "lff"])
    "; did you mean 'erm'?"
    >>> suggest("zzz", ["erm", "lff"])
    '; available: erm, lff'
    """
    known = sorted(allowed)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; available: {', '.join(known)}" if known else "; none available"
