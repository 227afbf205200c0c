"""Answers to "shortcut or signal?", remembered for a data set: what its user expects to tell the class is never balanced away."""

import json
from collections.abc import Sequence
from pathlib import Path

from unskew.core.errors import UserError
from unskew.core.fetch import cache
from unskew.core.files import write_json
from unskew.data.dataset import DataSet
from unskew.features import Spec


def remember(data: DataSet, words: Sequence[str], specs: Sequence[Spec]) -> None:
    """Keep, for this data set, that the class is expected to show in these representations; no words: forget nothing."""
    found = set(expected(data))
    for word in words:
        named = {one.name for one in specs if means(one, word)}
        if not named:
            known = ", ".join(one.name for one in specs)
            raise UserError(f"--expect {word}: no such representation is measured here; must be one of {known}")
        found |= named
    if words:
        write_json(_path(data), {"expected": sorted(found)})


def expected(data: DataSet) -> tuple[str, ...]:
    """The names of representations that are expected to show the class."""
    try:
        there = json.loads(_path(data).read_text(encoding="utf-8"))
        return tuple(str(name) for name in there["expected"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()  # nothing was answered, or the cache was cleared


def means(one: Spec, word: str) -> bool:
    """Whether a user's word means this representation: its name, its kind, one of its settings, or the words of its phrase."""
    kind, _, settings = one.name.partition(":")
    values = [piece.partition("=")[2] for piece in settings.split(",") if piece]
    known = {one.name, kind, *values, label(one), one.phrase}
    return _plain(word) in {_plain(k) for k in known}


def label(one: Spec) -> str:
    """The representation in plain words, without an article."""
    return one.phrase.removeprefix("the ")


def _plain(word: str) -> str:
    return word.strip().lower().replace("centre", "center").replace("colour", "color").replace("_", " ")


def _path(data: DataSet) -> Path:
    return cache() / "answers" / f"{data.fingerprint}.json"
