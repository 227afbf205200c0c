"""A folder is a registry: unskew/methods/lff.py is the method `lff`. Nothing to list, nothing to forget.

Each kind of component has a contract: a dataclass whose fields are the names a file must, or may, define. `load` fills it from
the file and rejects a file that does not fit. A dotted name loads a user's module by the same rules. No other code imports a
module by its name. Listing components and reading their cards imports nothing: names are file names, cards are read with `ast`.
"""

import ast
import dataclasses
import inspect
import itertools
import sys
import tokenize
from dataclasses import MISSING
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from unskew.core.errors import UserError, suggest

T = TypeVar("T")
ROOT = Path(__file__).parents[1]
FOLDERS = {  # kind, as users write it: folder of its files
    "methods": "methods",
    "models": "models",
    "data": "data/sets",
    "measures": "measure",
    "repairs": "repairs",
    "representations": "representations",
    "questions": "evaluation",
    "suites": "suites",
}
KINDS = tuple(FOLDERS)
ALIASES = {"stages": "methods"}  # methods of several stages used to be a separate kind
_HYPHENS = {"data", "models"}  # shown with hyphens; either spelling is accepted
_SINGULAR = {"data": "data set"}


def names(kind: str) -> list[str]:
    """Every component of a kind.

    >>> "erm" in names("methods") and "colored-mnist" in names("data")
    True
    """
    folder = ROOT / FOLDERS[kind]
    if kind == "suites":
        return sorted(path.stem for path in folder.glob("*.toml"))
    stems = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")]
    return sorted(n.replace("_", "-") if kind in _HYPHENS else n for n in stems)


def is_known(kind: str, name: str) -> bool:
    """Whether the package has a component of this name, in either spelling."""
    return name.replace("-", "_") in {n.replace("-", "_") for n in names(kind)}


def module(kind: str, name: str) -> ModuleType:
    """The module of one component; a dotted name is a user's module."""
    if "." in name:
        if not _importable(name):
            raise UserError(f"no module {name!r} on the Python path: a dotted name must be importable")
        return import_module(name)
    if not is_known(kind, name):
        raise UserError(f"no {singular(kind)} {name!r}{suggest(name, names(kind))}")
    return import_module(f"unskew.{FOLDERS[kind].replace('/', '.')}.{name.replace('-', '_')}")


def package(name: str) -> ModuleType:
    """A package of unskew by its name, imported when it is first used."""
    return import_module(f"unskew.{name}")


def load(kind: str, name: str, contract: type[T]) -> T:
    """The component as its contract describes it.

    A field `splits` is filled by `splits` or `SPLITS` of the file, a class `config` by `Config`; `name` and `source` are the
    file's. A field with the metadata `subclass_of` may also be filled by the one subclass of that class that the file defines.
    """
    return fill(module(kind, name), contract)


def fill(source: ModuleType, contract: type[T]) -> T:
    """An instance of the contract's dataclass from what a module defines."""
    given = vars(source)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(contract):  # type: ignore[arg-type]
        is_class = field.type in (type, type | None)
        spelled = (field.name.capitalize(),) if is_class else (field.name, field.name.upper())
        spellings = [n for n in spelled if n in given]
        if field.name == "name":
            values["name"] = source.__name__.rpartition(".")[2]
        elif field.name == "source":
            values["source"] = Path(given.get("__file__") or "")
        elif spellings:
            values[field.name] = given[spellings[0]]
        elif "subclass_of" in field.metadata and (own := subclasses(source, field.metadata["subclass_of"])):
            if len(own) > 1:
                raise UserError(f"{source.__name__} must define one {field.metadata['subclass_of'].__name__}, not {len(own)}")
            values[field.name] = own[0]
        elif field.default is MISSING and field.default_factory is MISSING:
            missing = "Config" if field.name == "config" else field.name
            raise UserError(
                f"{source.__name__} does not define {missing}, as every {contract.__name__} must; see {contract.__module__}"
            )
    try:
        return contract(**values)
    except UserError as error:
        raise UserError(f"{source.__name__}: {error}; see {contract.__module__}") from None


def subclasses(source: ModuleType, base: type[T]) -> list[type[T]]:
    """The subclasses of `base` that a module defines itself."""
    return [c for c in vars(source).values() if isinstance(c, type) and issubclass(c, base) and c.__module__ == source.__name__]


def card(kind: str, name: str) -> str:
    """The text of a component: its file's docstring, or the comment at the top of a suite. Imports nothing."""
    if "." in name:
        return (module(kind, name).__doc__ or "").strip()
    name = name.replace("_", "-") if kind == "suites" else name
    if not is_known(kind, name):
        raise UserError(f"no {singular(kind)} {name!r}{suggest(name, names(kind))}")
    if kind == "suites":
        lines = (ROOT / FOLDERS[kind] / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        head = itertools.takewhile(lambda line: line.startswith("#"), lines)
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in head).strip()
    path = ROOT / FOLDERS[kind] / f"{name.replace('-', '_')}.py"
    return _docstring(path)


def first_line(kind: str, name: str) -> str:
    """The summary of a component, for lists."""
    return card(kind, name).partition("\n")[0]


def singular(kind: str) -> str:
    return _SINGULAR.get(kind, kind.removesuffix("s"))


def from_here() -> None:
    """Make modules in the current folder importable by dotted name; installed ones of the same name come first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


@cache
def _docstring(path: Path) -> str:
    """The docstring of a file; the rest of the file is not parsed."""
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.STRING:
                return inspect.cleandoc(str(ast.literal_eval(token.string))).strip()
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE):
                break
    return ""


def _importable(name: str) -> bool:
    try:
        return all(part.isidentifier() for part in name.split(".")) and find_spec(name) is not None
    except ImportError:
        return False
