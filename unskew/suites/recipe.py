"""A row of a suite as one training: `pgd-table1/colored-mnist/0.99/lff@small`."""

from collections.abc import Sequence
from dataclasses import dataclass

from unskew.core.errors import UserError, suggest
from unskew.suites.plan import plan
from unskew.suites.reader import Suite, Task, read


@dataclass(frozen=True, slots=True)
class Recipe:
    """The training of a row, and the shared runs that it needs first."""

    task: Task
    shared: tuple[Task, ...]


def recipe(text: str, seed: int = 0) -> Recipe:
    """The row that the text names: suite/data/setting/method@scale. A part may be left out if there is only one choice."""
    path, _, scale = text.partition("@")
    named, *words = path.split("/")
    suite = read(named)
    scale = _one("scale", scale, list(suite.part("scale")), text)
    chosen = _chosen(suite, words, text)
    only = [word for word in chosen.values() if word]
    tasks = plan(suite, scale, seeds=f"{seed}..{seed}", only=only)
    if any(t.tried for t in tasks):
        tried = " ".join(next(t for t in tasks if t.tried).tried)
        raise UserError(f"recipe {text!r} is chosen from a grid; run it with unskew bench {suite.name}, which tunes {tried}")
    if len([t for t in tasks if not t.shared]) != 1:
        raise UserError(f"recipe {text!r} does not name a single run of {suite.name}")
    task = next(t for t in tasks if not t.shared)
    if task.judge:
        raise UserError(f"recipe {text!r} trains nothing: it judges the run of [shared.{task.judge}]")
    if task.method in ("auto", "dependency"):
        kind = "a run of auto" if task.method == "auto" else "a dependency"
        raise UserError(f"recipe {text!r} is {kind}, not a training; run it with unskew bench {suite.name} --only {task.name}")
    return Recipe(task, tuple(t for t in tasks if t.shared and t.id in task.needs))


def _chosen(suite: Suite, words: Sequence[str], text: str) -> dict[str, str]:
    """The data set, setting and method that are named, or the only ones there are."""
    places = {*suite.part("data"), *(str(a) for entry in suite.part("data").values() for a in entry.get("at", {}) if a)}
    for word in words[:-1]:
        if word not in places:
            raise UserError(f"recipe {text!r}: no data set or setting {word!r}{suggest(word, places)}")
    data = _one("data set", next((w for w in words if w in suite.part("data")), ""), list(suite.part("data")), text)
    ats = [str(a) for a in suite.part("data")[data].get("at", {})]
    rest = [w for w in words if w != data]
    at = _one("setting", next((w for w in rest if w in ats), ""), ats, text) if ats else ""
    rest = [w for w in rest if w != at]
    if len(rest) > 1:
        known = {*suite.part("data"), *ats, *suite.part("method")}
        raise UserError(f"recipe {text!r}: {suite.name} has no {rest[0]!r}{suggest(rest[0], known)}")
    method = _one("method", rest[0] if rest else "", list(suite.part("method")), text)
    return {"data": data, "at": at, "method": method}


def _one(what: str, named: str, choices: list[str], text: str) -> str:
    if named in choices:
        return named
    if named:
        raise UserError(f"recipe {text!r}: no {what} {named!r}{suggest(named, choices)}")
    if len(choices) != 1:
        raise UserError(f"recipe {text!r}: name a {what}, one of {', '.join(choices)}, as in SUITE/DATA/AT/METHOD@SCALE")
    return choices[0]
