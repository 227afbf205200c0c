"""Settings as users write them, `train.epochs=3`, sorted into the parts of a run. No other code knows the parts.

A key without a part (`q=0.7`, or `method.q=0.7`) belongs to the method or repair.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unskew.core.errors import UserError

PARTS = ("data", "optim", "train", "select", "model")
READING_ONLY = ("augment",)  # settings of data that change inputs for training only


@dataclass(frozen=True)
class Settings:
    """Values by part, and `own`: those of the method or repair.

    >>> s = Settings.of({"train.epochs": 3, "q": 0.7, "data": {"size": 64}})
    >>> s["data"], s["train"], s.own
    ({'size': 64}, {'epochs': 3}, {'q': 0.7})
    >>> s.only("data").dotted()
    {'data.size': 64}
    """

    parts: Mapping[str, Mapping[str, Any]]
    own: Mapping[str, Any]

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> "Settings":
        parts: dict[str, dict[str, Any]] = {name: {} for name in PARTS}
        own: dict[str, Any] = {}
        for key, value in (values or {}).items():
            head, _, tail = key.partition(".")
            target = own if head == "method" else parts.get(head)
            if target is None:
                own[key] = value
            elif tail:
                target[tail] = value
            elif isinstance(value, Mapping):
                target.update(value)
            else:
                raise UserError(f"{key!r} is a part, not a setting: write {key}.NAME=value")
        return cls(parts, own)

    def __getitem__(self, part: str) -> dict[str, Any]:
        return dict(self.parts[part])

    def only(self, *parts: str) -> "Settings":
        """The settings of these parts, and no others."""
        return Settings({name: self.parts[name] if name in parts else {} for name in PARTS}, {})

    def training(self) -> "Settings":
        """Everything except how the source is read."""
        return Settings({**self.parts, "data": {}}, self.own)

    def shared(self) -> "Settings":
        """The parts without the method's settings: what all stages of a method share."""
        return Settings(self.parts, {})

    def reading(self) -> "Settings":
        """How a verb that does not train reads the rows: inputs are not augmented."""
        return Settings({"data": without(self.parts["data"], READING_ONLY), **{n: {} for n in PARTS if n != "data"}}, {})

    def under(self, head: str) -> tuple["Settings", "Settings"]:
        """The settings under `head.`, without that prefix, and the rest.

        >>> inner, rest = Settings.of({"denoise.factor": 2, "denoise.train.epochs": 1, "q": 1}).under("denoise")
        >>> inner.dotted(), rest.dotted()
        ({'train.epochs': 1, 'factor': 2}, {'q': 1})
        """
        prefix = f"{head}."
        inner = {k.removeprefix(prefix): v for k, v in self.own.items() if k.startswith(prefix)}
        return Settings.of(inner), Settings(self.parts, {k: v for k, v in self.own.items() if not k.startswith(prefix)})

    def merged(self, more: Mapping[str, Any]) -> "Settings":
        """These settings, overridden by `more`."""
        return Settings.of(self.dotted() | dict(more))

    def dotted(self) -> dict[str, Any]:
        """Back to one flat table, `train.epochs` and so on."""
        flat = {f"{part}.{key}": value for part in PARTS for key, value in self.parts[part].items()}
        return flat | dict(self.own)


def without(table: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """A table without some of its keys."""
    left_out = set(keys)
    return {k: v for k, v in table.items() if k not in left_out}
