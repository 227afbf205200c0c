"""The verb `new`: the source file and the test file of a component, from templates, with a passing test."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Template

from unskew.core import registry
from unskew.core.errors import UserError, suggest
from unskew.core.files import nothing_left, write_text

KINDS = ("method", "representation", "suite")
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class NewFiles:
    paths: tuple[Path, ...]
    next: str  # the command that tests them

    def json(self) -> dict[str, object]:
        return {"paths": [str(path) for path in self.paths], "next": self.next}


def new(kind: str, name: str, root: Path | None = None) -> NewFiles:
    """Write the files of a component called `name` below `root`, the current folder if not given."""
    if kind not in KINDS:
        raise UserError(f"unskew new {kind}: there is no template{suggest(kind, KINDS)}")
    root = root or Path.cwd()
    if kind == "suite":
        return _new_suite(name, root)
    *package, leaf = name.split(".")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", leaf) or not all(part.isidentifier() for part in package):
        raise UserError(f"{name!r} cannot be the name of a {kind}: use lower-case letters, digits and _, starting with a letter")
    if package:
        source, test, module = root.joinpath(*package, f"{leaf}.py"), root / "tests" / f"test_{leaf}.py", name
    elif _is_checkout(root):
        if registry.is_known(f"{kind}s", leaf):
            raise UserError(f"{kind} {leaf!r} already exists; choose another name")
        source, test = root / "unskew" / f"{kind}s" / f"{leaf}.py", root / "tests" / f"{kind}s" / f"test_{leaf}.py"
        module = f"unskew.{kind}s.{leaf}"
    else:
        raise UserError(f"{root} is not a checkout of unskew; name a module of your own, such as mypackage.{leaf}")
    words = {"name": leaf, "module": module, "method": leaf if not package else name, "class_name": _class_name(leaf)}
    shown = _write(root, {source: f"{kind}.py.txt", test: f"test_{kind}.py.txt"}, words)
    return NewFiles(shown, f"python -m pytest {shown[1].as_posix()}")


def _new_suite(name: str, root: Path) -> NewFiles:
    """One file, NAME.toml, which `unskew bench` takes as it is."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise UserError(f"{name!r} cannot be the name of a suite: use lower-case letters, digits and -")
    shown = _write(root, {root / f"{name}.toml": "suite.toml.txt"}, {"title": name.replace("-", " ").capitalize()})
    return NewFiles(shown, f"unskew bench {shown[0].as_posix()} --scale smoke --out {name}")


def _write(root: Path, files: dict[Path, str], words: dict[str, str]) -> tuple[Path, ...]:
    """Fill the templates; a file that exists is never replaced."""
    for path in files:
        if path.exists():
            raise UserError(f"{path} already exists; choose another name")
    with nothing_left(*files):
        for path, template in files.items():
            write_text(path, Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(words))
    return tuple(path.relative_to(root) for path in files)


def _class_name(name: str) -> str:
    """
    >>> _class_name("my_method")
    'MyMethod'
    """
    return "".join(part.capitalize() for part in name.split("_"))


def _is_checkout(root: Path) -> bool:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, KeyError, ValueError):
        return False
    return project == "unskew" and (root / "unskew" / "methods").is_dir()
