"""Every setting with its type, default and meaning, read from the source with `ast`; nothing is imported.

A setting is a field of a frozen dataclass; the comment on its line says what it means.
"""

import ast
import io
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from unskew.core import registry
from unskew.core.errors import UserError, suggest

PARTS = {  # part of a run: file and class of its settings
    "data": ("data/reading.py", "DataConfig"),
    "optim": ("training/optim.py", "OptimConfig"),
    "train": ("training/fit.py", "TrainConfig"),
    "select": ("training/selection.py", "SelectConfig"),
}
COMPONENTS = ("methods", "repairs", "models", "data", "representations")  # kinds whose files define settings


@dataclass(frozen=True, slots=True)
class Setting:
    name: str  # train.batch, or lff.q
    type: str
    default: str
    meaning: str
    required: bool = False  # whether it has no default; an empty one is a default too

    @property
    def shown(self) -> str:
        """The default in words."""
        return "must be given" if self.required else self.default or "empty"

    def json(self) -> dict[str, str]:
        return {"name": self.name, "type": self.type, "default": self.default, "meaning": self.meaning}

    def line(self, width: int = 20) -> str:
        return f"{f'{self.name}={self.default}':{width}}  {self.meaning} ({self.type})"


def run_settings() -> list[Setting]:
    """The settings of reading, optimiser, loop and selection."""
    return [s for part, (path, cls) in PARTS.items() for s in fields(registry.ROOT / path, cls, part)]


def component_settings(kind: str, name: str) -> list[Setting]:
    """The settings of one component, from its file."""
    path = registry.ROOT / registry.FOLDERS[kind] / f"{name.replace('-', '_')}.py"
    return fields(path, "", name)


def find(name: str) -> list[Setting]:
    """The settings called `train.batch` or `lff.q`."""
    head, _, tail = name.partition(".")
    if head in PARTS:
        known = {s.name: s for s in run_settings() if s.name.startswith(f"{head}.")}
        if name not in known:
            raise UserError(f"no setting {name!r}{suggest(name, known)}")
        return [known[name]]
    settings = [
        s
        for kind in COMPONENTS
        if registry.is_known(kind, head)
        for s in component_settings(kind, head)
        if s.name == f"{head}.{tail}"
    ]
    if not settings:
        raise UserError(
            f"no setting {name!r}; see unskew list settings for those of a run, unskew explain {head} for those of {head}"
        )
    return settings


@cache
def fields(path: Path, cls: str, prefix: str) -> list[Setting]:
    """The fields of a class, or of the file's Config, in order."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    node = _config(tree, cls)
    if node is None:
        return []
    comments = _comments(text)
    settings = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            default = "" if item.value is None else ast.unparse(_resolved(item.value, tree)).strip("'")
            last = item.end_lineno or item.lineno
            meaning = next((comments[line] for line in (last, item.lineno, *range(item.lineno, last)) if line in comments), "")
            settings.append(
                Setting(f"{prefix}.{item.target.id}", ast.unparse(item.annotation), default, meaning, item.value is None)
            )
    return settings


def _resolved(value: ast.expr, tree: ast.Module) -> ast.expr:
    """What a default that names a constant stands for, looked up in its own file and in those it was imported from."""
    if not isinstance(value, ast.Name):
        return value
    for node in tree.body:
        if isinstance(node, ast.Assign) and value.id in (assigned := _assigned(node)):
            return _resolved(assigned[value.id], tree)
        if isinstance(node, ast.ImportFrom) and node.module and any(a.name == value.id and not a.asname for a in node.names):
            path = registry.ROOT.parent / f"{node.module.replace('.', '/')}.py"
            if path.is_file():
                return _resolved(value, ast.parse(path.read_text(encoding="utf-8")))
    return value


def _assigned(node: ast.Assign) -> dict[str, ast.expr]:
    """The names that an assignment gives values to: `A = 1`, or `A, B = 1, 2`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return {t.id: v for t, v in zip(target.elts, value.elts, strict=False) if isinstance(t, ast.Name)}
    return {target.id: value} if isinstance(target, ast.Name) else {}


def _config(tree: ast.Module, cls: str) -> ast.ClassDef | None:
    """The class of this name; without a name, the class called Config or NameConfig."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    matches = [c for c in classes if (c.name == cls if cls else c.name.endswith("Config"))]
    return matches[0] if matches else None


def _comments(text: str) -> dict[int, str]:
    """Comment by line number."""
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line.lstrip().startswith("#"):
            comments[token.start[0]] = token.string.removeprefix("#").strip()
    return comments
