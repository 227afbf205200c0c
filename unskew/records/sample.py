"""A row that a page shows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which row a thumbnail is of, and its score: the higher, the more likely it lacks the shortcut."""

    index: int
    path: str = ""
    score: float | None = None
