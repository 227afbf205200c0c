"""The rules of the tree: imports go one way, the command line starts fast, what the docs show is what happens."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unskew import registry
from unskew.cli import app

ROOT = Path(__file__).parent.parent
# Lower may not import higher.
LAYERS = [
    {"errors", "durations", "files", "rng", "registry", "config", "progress", "verbs", "engine", "checkpoint"},
    {"records"}, {"maths", "nn", "losses"}, {"data"}, {"measure"}, {"repair"}, {"models", "representations"},
    {"methods"}, {"evaluate"}, {"train"}, {"report"}, {"audit", "repair._run", "repair._page", "repair._export"},
    {"stages", "dependency"}, {"bench"}, {"demo"}, {"cli"}, {"__main__"},
]  # fmt: skip


def level(name):
    """Of a module below unskew; a file may stand higher than the rest of its folder: the verb of a folder of formulas."""
    for part in (".".join(name.split(".")[:2]), name.split(".")[0]):
        for k, layer in enumerate(LAYERS):
            if part in layer:
                return k
    raise AssertionError(f"{name} has no place among the layers")


@pytest.mark.parametrize("path", sorted((ROOT / "unskew").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_one_way(path):
    part = ".".join(path.relative_to(ROOT / "unskew").with_suffix("").parts)
    if part == "__init__":
        return
    if part == "train.__init__":
        return  # binds the verb, which is above it: methods of one stage and of several
    home = f"unskew.{part.removesuffix('.__init__')}." if part.endswith(".__init__") else "-"  # a package may offer what is in it
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "unskew" else [f"unskew.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        for name in names:
            if name.startswith("unskew.") and not name.startswith(("unskew.__version__", home)):
                assert level(name.removeprefix("unskew.")) <= level(part), f"{path} imports {name}"


def test_help_answers_fast_and_imports_nothing_heavy():
    code = "import sys, unskew.cli; print([m for m in ('torch', 'polars', 'numpy', 'sklearn', 'altair') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    spent = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-m", "unskew", "--help"], capture_output=True, check=True)
        after = os.times()
        # Processor time of the child: what other programs do meanwhile does not count.
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(spent) < 0.5


def test_every_verb_has_help_and_every_component_a_card(unskew):
    verbs = [c.name or c.callback.__name__ for c in app.registered_commands]
    for verb in verbs:
        assert "Usage" in unskew(verb, "--help").stdout
    for kind in registry.KINDS:
        for name in registry.names(kind):
            card = registry.card(kind, name)
            assert "Source: " in card, f"{kind} {name}"
            assert "Differs: " in card, f"{kind} {name}"


def test_readme_commands_exist():
    text = (ROOT / "README.md").read_text()
    verbs = {c.name or c.callback.__name__ for c in app.registered_commands}
    used = set(re.findall(r"^ +unskew ([a-z]+)", text, re.MULTILINE))
    assert used
    assert used <= verbs
    for target in re.findall(r"`?make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


@pytest.mark.parametrize("page", ["README.md", "docs/own-loop.md"])
def test_python_of_the_pages_runs(tmp_path, monkeypatch, page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in blocks:
        exec(compile(block, page, "exec"), space)


def test_generated_pages_are_up_to_date():
    from docs.generate import cards_page, cli_page

    assert (ROOT / "docs" / "cli.md").read_text() == cli_page(), "run make docs"
    assert (ROOT / "docs" / "cards.md").read_text() == cards_page(), "run make docs"
