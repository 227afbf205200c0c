"""A folder is a registry: unskew/methods/lff.py is the method `lff`. Nothing to list, nothing to forget.

A dotted name loads a user's own module by the same rules. Listing a folder imports nothing but the folder.
"""

import itertools
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from unskew.errors import UserError, suggest

KINDS = ("methods", "models", "data", "measures", "repairs", "representations", "stages", "suites")
_FOLDER = {"measures": "measure", "repairs": "repair"}
_SUITES = Path(__file__).parent / "bench" / "suites"
_HYPHENS = {"data", "models"}  # shown with hyphens; either spelling is understood


def names(kind: str) -> list[str]:
    """Every public module of a component folder.

    >>> "erm" in names("methods") and "colored-mnist" in names("data")
    True
    """
    if kind == "suites":
        return sorted(path.stem for path in _SUITES.glob("*.toml"))
    path = import_module(f"unskew.{_FOLDER.get(kind, kind)}").__path__
    found = [m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")]
    return sorted(n.replace("_", "-") if kind in _HYPHENS else n for n in found)


def load(kind: str, name: str) -> ModuleType:
    """The module of one component."""
    if "." in name:
        known = all(part.isidentifier() for part in name.split("."))
        try:
            known = known and find_spec(name) is not None
        except ImportError:
            known = False
        if not known:
            raise UserError(f"no module {name!r} on the Python path: a dotted name must be importable")
        return import_module(name)
    module = name.replace("-", "_")
    if module not in {n.replace("-", "_") for n in names(kind)}:
        raise UserError(f"no {_singular(kind)} {name!r}{suggest(name, names(kind))}")
    return import_module(f"unskew.{_FOLDER.get(kind, kind)}.{module}")


def component(module: ModuleType, base: type) -> type:
    """The one subclass of `base` that a component module defines itself."""
    own = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base) and c.__module__ == module.__name__]
    if len(own) != 1:
        raise UserError(f"{module.__name__} must define exactly one {base.__name__}, found {len(own)}")
    return own[0]


def card(kind: str, name: str) -> str:
    """The text of a component: its module's docstring, or the comment at the head of a suite."""
    if kind == "suites":
        name = name.replace("_", "-")
        if name not in names(kind):
            raise UserError(f"no suite {name!r}{suggest(name, names(kind))}")
        lines = (_SUITES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        head = itertools.takewhile(lambda line: line.startswith("#"), lines)
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in head).strip()
    return (load(kind, name).__doc__ or "").strip()


def _singular(kind: str) -> str:
    return {"data": "data set"}.get(kind, kind.removesuffix("s"))
