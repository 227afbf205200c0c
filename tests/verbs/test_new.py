"""`unskew new method`: two files, and a test that passes as it is."""

import os
import subprocess
import sys

import pytest

from unskew.core.errors import UserError
from unskew.suites.reader import read
from unskew.verbs.new import new


def test_a_users_own_method_is_written_passes_its_test_and_trains(tmp_path, unskew):
    shown = unskew("new", "method", "mypackage.mine").stdout
    assert "wrote mypackage/mine.py" in shown
    assert "next: python -m pytest tests/test_mine.py" in shown
    (tmp_path / "mypackage" / "__init__.py").touch()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_mine.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    short = ("--model", "mlp", "train.steps=3", "train.batch=16", "gamma=2")
    unskew("train", "toy:rows=200", "--method", "mypackage.mine", *short, "--out", "run")


def test_a_users_own_representation_passes_its_test(tmp_path, unskew):
    unskew("new", "representation", "mypackage.spread")
    (tmp_path / "mypackage" / "__init__.py").touch()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_spread.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_suite_is_written_and_can_be_run(tmp_path, unskew):
    shown = unskew("new", "suite", "my-table").stdout
    assert "next: unskew bench my-table.toml --scale smoke --out my-table" in shown
    assert read(str(tmp_path / "my-table.toml")).table["title"] == "My table"
    with pytest.raises(UserError, match="exists; choose another name"):
        new("suite", "my-table", tmp_path)


def test_in_a_checkout_the_files_go_where_the_tree_has_them(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "unskew"\n')
    (tmp_path / "unskew" / "methods").mkdir(parents=True)
    made = new("method", "my_method", tmp_path)
    assert [p.as_posix() for p in made.paths] == ["unskew/methods/my_method.py", "tests/methods/test_my_method.py"]
    text = (tmp_path / made.paths[0]).read_text()
    for part in ("class MyMethod(Method)", "Source: ", "Differs: ", ".. math::"):
        assert part in text
    assert "from unskew.methods.my_method import MyMethod" in (tmp_path / made.paths[1]).read_text()
    with pytest.raises(UserError, match="exists; choose another name"):
        new("method", "my_method", tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [("model", "x", "there is no template"), ("suite", "../x", "lower-case letters"), ("method", "Mine", "lower-case letters"),
     ("method", "mine", "not a checkout of unskew"), ("method", "a b.c", "lower-case letters")],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(kind, name, said, tmp_path):
    with pytest.raises(UserError, match=said):
        new(kind, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_taken_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "unskew"\n')
    (tmp_path / "unskew" / "methods").mkdir(parents=True)
    with pytest.raises(UserError, match="method 'lff' already exists"):
        new("method", "lff", tmp_path)
