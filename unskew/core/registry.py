"""A folder is a registry: unskew/methods/lff.py is the method `lff`. Nothing to list, nothing to forget.

Each kind of component has a contract: a dataclass whose fields are the names a file must, or may, define. `load` fills it from
the file and rejects a file that does not fit. A dotted name loads a user's module by the same rules. No other code imports a
module by its name. Listing components and reading their cards imports nothing: names are file names, cards are read with `ast`.

Data never makes this process import a module. On the command line a dotted name must be one of the words typed (`only_these`), or
everything must be trusted (`--trust`). In Python a name that a run's folder holds (`named_by`) must be a module that is already
imported. See SECURITY.md.
"""

import ast
import dataclasses
import inspect
import itertools
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
_PATHS = ("--out", "--weights", "--root", "--recipe", "--audit", "--repair")  # options whose value is a path, never a module

_allowed: frozenset[str] | None = None  # the dotted names that may be imported; None: all that a caller in Python gives
_everything = False  # --trust
_named_by: ContextVar[str] = ContextVar("named_by", default="")  # the file whose names are being loaded


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
        spelled = all(part.isidentifier() for part in name.split("."))
        if spelled:
            _check_trust(name)
        if not spelled or not _importable(name):
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


def only_these(modules: Iterable[str]) -> None:
    """From now on import these dotted names and no others."""
    global _allowed
    _allowed = frozenset(modules)


def trust_everything() -> None:
    """From now on import whatever a file names."""
    global _everything
    _everything = True


def trusted(words: Iterable[str]) -> list[str]:
    """The words for a worker process that may import what this one may: `--trust`, or the modules among these words."""
    if _everything:
        return ["--trust"]
    return [name for name in modules_in(words) if name in sys.modules or (_allowed is not None and name in _allowed)]


@contextmanager
def named_by(path: Path) -> Iterator[None]:
    """Inside, names come from a file: a module that is not imported yet is refused."""
    before = _named_by.set(str(path))
    try:
        yield
    finally:
        _named_by.reset(before)


def modules_in(words: Iterable[str]) -> list[str]:
    """The dotted names among the words of a command line: of a method, network, source or representation. Paths are not names.

    >>> modules_in(["train", "my.set:rows=9", "--method=a.b", "phi=c.d", "--out", "my.run", "train.epochs=1.5"])
    ['a.b', 'c.d', 'my.set']
    """
    found, skip = set(), False
    for word in words:
        option, equals, value = word.partition("=")
        is_path, skip = skip or (bool(equals) and option in _PATHS), word in _PATHS
        if is_path:
            continue
        text = value if equals and re.fullmatch(r"-*[\w.-]+", option) else word
        for piece in re.split(r"[=:,+]", text):
            if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", piece) and not Path(piece).exists():
                found.add(piece)
    return sorted(found)


def _check_trust(name: str) -> None:
    """Raise for a module that nobody named but data; one that is imported already runs nothing."""
    source = _named_by.get()
    if _everything or name in sys.modules or (_allowed is not None and name in _allowed):
        return
    if _allowed is not None:
        raise UserError(
            f"{source or 'a run, recipe or suite'} names the module {name!r}, which was not named on the command line; "
            "unskew runs no code that comes with data. If you trust it, add --trust"
        )
    if source:
        raise UserError(
            f"{source} names the module {name!r}; unskew runs no code that comes with data. If you trust it, import it first"
        )


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
