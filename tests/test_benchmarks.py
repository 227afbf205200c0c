"""The registry of benchmarks: every file can be run by name, a figure knows whether it holds, and the newest line of a name is kept."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import _registry
from benchmarks.__main__ import names
from benchmarks._registry import Figure, in_turn, ratio
from docs import speed

ROOT = Path(__file__).parent.parent


def test_every_benchmark_has_a_summary_and_one_way_to_run():
    listed = subprocess.run([sys.executable, "-m", "benchmarks"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == names()
    for name in names():
        tree = ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert len(functions & {"figures", "main"}) == 1, name
        assert ast.get_docstring(tree)
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode != 0
    assert "no benchmark 'nothing'" in wrong.stderr


@pytest.mark.parametrize(
    ("ratio", "value", "least", "most", "holds"),
    [(3.1, None, 3.0, None, True), (2.9, None, 3.0, None, False), (None, 0.5, None, 0.4, False), (1.0, None, None, None, None)],
)
def test_a_figure_holds_within_its_bounds(ratio, value, least, most, holds):
    assert Figure("a", "b", ratio, least=least, most=most, value=value).json()["holds"] is holds


def test_forms_take_turns_and_the_first_round_does_not_count():
    calls = []
    times = in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert calls == ["a", "b"] * 3
    assert {name: len(t) for name, t in times.items()} == {"a": 2, "b": 2}
    assert ratio([2.0, 9.0, 4.0], [1.0, 1.0, 1.0]) == 4.0


def test_the_newest_line_of_a_name_is_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(_registry, "RECORD", tmp_path / "speed.jsonl")
    monkeypatch.setattr(speed, "HERE", tmp_path)
    about = {"bench": "x", "machine": "m", "python": "3", "torch": "2", "commit": "c"}
    for number in (2.0, 3.0):
        _registry.record([{**Figure("one", "what it is", number, least=2.5, more={"seconds": 0.12345}).json(), **about}])
    _registry.record([{**Figure("another", "what that is", None, value=7.0, unit="s").json(), **about}])
    kept = [json.loads(line) for line in (tmp_path / "speed.jsonl").read_text().splitlines()]
    assert [line["name"] for line in kept] == ["another", "one"]
    text = speed.page()
    assert "- **one**: 3 (must be at least 2.5, met)\n  what it is\n  - seconds: 0.1235" in text
    assert "- **another**: 7 s\n" in text
