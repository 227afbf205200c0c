"""Plain dataclasses from TOML and key=value arguments. No schema language, no merging rules to learn."""

import dataclasses
import json
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from unskew.core.errors import UserError, suggest

T = TypeVar("T")


def build(cls: type[T], values: dict[str, Any], where: str = "") -> T:
    """An instance of dataclass `cls`; text is parsed by the field's type, an unknown key is an error.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Optim:
    ...     lr: float = 0.001
    >>> @dataclass(frozen=True)
    ... class Run:
    ...     steps: int = 100
    ...     optim: Optim = Optim()
    >>> build(Run, {"optim.lr": "3e-4"})
    Run(steps=100, optim=Optim(lr=0.0003))
    >>> build(Run, {"step": "5"})
    Traceback (most recent call last):
    unskew.core.errors.UserError: unknown setting 'step'; did you mean 'steps'?
    """
    hints = get_type_hints(cls)
    fields = {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    mine: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        head, _, tail = key.partition(".")
        if head not in fields:
            raise UserError(f"unknown setting {where + head!r}{suggest(head, fields)}")
        is_table = get_origin(fields[head]) is dict  # settings of a component chosen by name, which checks them itself
        if tail and not (dataclasses.is_dataclass(fields[head]) or is_table):
            raise UserError(f"setting {where + head!r} has no parts, got {where + key!r}")
        if tail:
            nested.setdefault(head, {})[tail] = value
        elif isinstance(value, dict) and (dataclasses.is_dataclass(fields[head]) or is_table):
            nested.setdefault(head, {}).update(value)
        else:
            mine[head] = read(value, fields[head], where + head)
    for head, inner in nested.items():
        if get_origin(fields[head]) is dict:
            mine[head] = inner
            continue
        mine[head] = build(typing.cast("type[Any]", fields[head]), inner, f"{where}{head}.")
    missing = [
        f.name
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]
        if f.init and f.name not in mine and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise UserError(f"setting {where + missing[0]!r} has no default and was not given; write {where}{missing[0]}=VALUE")
    return cls(**mine)


def read(value: Any, hint: Any, name: str) -> Any:
    """`value` as the type `hint`; text is parsed, anything else must already fit.

    >>> read("0.5", float, "ratio"), read("yes", bool, "flip"), read("3", int | None, "k"), read("none", int | None, "k")
    (0.5, True, 3, None)
    >>> read("1,2", tuple[int, ...], "sizes")
    (1, 2)
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None or (isinstance(value, str) and value.lower() in ("none", "null", "")):
            if type(None) in args:
                return None
        others = [a for a in args if a is not type(None)]
        for other in others:
            try:
                return read(value, other, name)
            except UserError:
                if other is others[-1]:
                    raise
    if origin is typing.Literal:
        if value in args:
            return value
        raise UserError(f"{name}={value}: must be one of {', '.join(map(str, args))}")
    if origin in (tuple, list):
        items = _items(value)
        return tuple(read(item, args[0], name) for item in items)
    if hint is dict or origin is dict:
        if isinstance(value, dict):
            return value
        raise UserError(f"{name}={value!r}: must be a table of settings")
    if hint is Any:
        return value
    return _scalar(value, hint, name)


def _items(value: Any) -> Sequence[Any]:
    if not isinstance(value, str):
        return value if isinstance(value, Sequence) else [value]
    text = value.strip()
    if text.startswith("["):
        try:
            loaded = json.loads(text)
        except json.JSONDecodeError:
            raise UserError(f"{text!r} is not a list: write a,b,c or [a, b, c]") from None
        return loaded if isinstance(loaded, list) else [loaded]
    return [part.strip() for part in text.split(",") if part.strip()]


_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_KIND = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _scalar(value: Any, hint: Any, name: str) -> Any:
    wrong = UserError(f"{name}={value}: must be {_KIND.get(hint, getattr(hint, '__name__', hint))}")
    try:
        if hint is bool:
            if isinstance(value, bool):
                return value
            return _WORDS[str(value).strip().lower()]
        if hint is int:
            if isinstance(value, bool):
                raise wrong
            number = float(value)
            if number != int(number) or abs(number) >= 2**63:  # what a tensor can count
                raise wrong
            return int(value) if isinstance(value, int) else int(number)
        if hint is float:
            if isinstance(value, bool) or not math.isfinite(float(value)):
                raise wrong
            return float(value)
        if hint is str:
            if isinstance(value, (dict, list)):
                raise wrong
            return str(value)
    except (ValueError, KeyError, OverflowError, TypeError):
        raise wrong from None
    if isinstance(value, hint):
        return value
    raise wrong


def words(pairs: Sequence[str]) -> dict[str, str]:
    """The `key=value` arguments of a command line as a dictionary.

    >>> words(["train.epochs=3", "note=a=b"])
    {'train.epochs': '3', 'note': 'a=b'}
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{pair!r} is not a setting: write key=value")
        if key in settings:
            raise UserError(f"setting {key!r} is given twice")
        settings[key] = value
    return settings


def recipe(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """A TOML recipe: what it runs (source, method and model in its table [run]) and its settings, as nested tables."""
    try:
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read recipe {str(path)!r}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"recipe {str(path)!r} is not valid TOML: {error}") from None
    run = loaded.pop("run", {})
    unknown = [k for k in run if k not in ("source", "method", "model")] if isinstance(run, dict) else ["run"]
    if unknown:
        raise UserError(f"recipe {str(path)!r}: [run] may set source, method and model, not {unknown[0]!r}")
    return {k: str(v) for k, v in run.items()}, loaded


def merged(nested: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """The settings of a recipe, overridden by those of the command line.

    >>> merged({"optim": {"lr": 0.1, "name": "sgd"}}, {"optim.lr": "0.2", "q": "1"})
    {'optim.lr': '0.2', 'optim.name': 'sgd', 'q': '1'}
    """
    dotted: dict[str, Any] = {}
    for key, value in nested.items():
        dotted |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
    return dotted | words


def flat(cfg: Any) -> dict[str, Any]:
    """Every resolved value, for config.json: what ran, not what was typed."""
    return dataclasses.asdict(cfg)


def whole_names(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Rejoin names with settings that were split at their commas.

    >>> whole_names(("color", "layer:model=resnet", "net.depth=50", "texture"))
    ('color', 'layer:model=resnet,net.depth=50', 'texture')
    """
    names: list[str] = []
    for part in parts:
        if names and "=" in part and ":" not in part.partition("=")[0]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return tuple(names)


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    >>> numbers("0.25,0.5", "rates")
    (0.25, 0.5)
    """
    try:
        return tuple(float(word) for word in text.split(",") if word)
    except ValueError:
        raise UserError(f"{name} {text!r}: must be numbers separated by commas, such as 0.25,0.5") from None
