"""Two processes on one output: one wins, the other is refused, nothing is lost. For every verb."""

import subprocess
import sys
from contextlib import contextmanager

import polars as pl
import pytest

import unskew as package
from unskew.core import workplace
from unskew.core.errors import UserError

SOURCE = "colored-mnist:base=digits,ratio=0.9"
HOLD = """
import sys
from pathlib import Path
from unskew.core.workplace import alone
with alone(Path(sys.argv[1]), "other"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(out):
    """Another process that works on `out`."""
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline().strip() == "held"
        yield
    finally:
        other.communicate("")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    short = {"train.steps": 4, "train.batch": 32}
    return package.train("toy:rows=300", out=tmp_path_factory.mktemp("runs") / "run", model="mlp", settings=short)


def _audit(out, run):
    package.audit("planted:rows=200,bias=0.5", out=out, representations=["input"])


def _repair(out, run):
    package.repair(SOURCE, "inverse_frequency", out=out, how="folder")


def _dependency(out, run):
    settings = {"train.steps": 2, "repair.epochs": 2}
    package.dependency(SOURCE, phi="color", out=out, rates=(0.5,), model="mlp", settings=settings)


def _train(out, run):
    package.train("toy:rows=300", out=out, model="mlp", settings={"train.steps": 4, "train.batch": 32})


VERBS = {"audit": _audit, "repair": _repair, "dependency": _dependency, "training": _train}


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_at_work_is_refused_and_left_as_it_is(verb, tmp_path, run, monkeypatch):
    monkeypatch.setattr(workplace, "PATIENCE", 0.2)
    out = tmp_path / "out"
    with held(out):
        with pytest.raises(UserError, match=f"another {verb} is running in .*; wait for it to finish, or choose another --out"):
            VERBS[verb](out, run)
        assert not out.exists() or not list(out.iterdir())
    VERBS[verb](out, run)  # free again
    assert any(out.iterdir())
    assert not [p for p in tmp_path.rglob(".*") if p.name.endswith((".lock", ".part", ".state"))]


def test_evaluate_and_report_wait_for_nobody_either(tmp_path, run, monkeypatch):
    monkeypatch.setattr(workplace, "PATIENCE", 0.2)
    with held(run.path), pytest.raises(UserError, match="another evaluation is running"):
        package.evaluate(run)
    package.evaluate(run)
    page = tmp_path / "page.html"
    with held(page), pytest.raises(UserError, match="another report is running"):
        package.report(run, page)
    assert not page.exists()
    assert package.report(run, page).is_file()


def test_a_lock_ends_with_its_process(tmp_path):
    code = HOLD.replace("sys.stdin.read()", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True)
    assert (tmp_path / ".out.lock").exists()  # left by a process that was killed; the lock on it is free
    with workplace.alone(tmp_path / "out", "work"):
        pass
    assert not (tmp_path / ".out.lock").exists()


def test_two_repairs_of_one_folder_started_together(tmp_path):
    words = [sys.executable, "-m", "unskew", "repair", SOURCE, "--with", "inverse_frequency", "--as", "folder", "--out", "kept"]
    both = [subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300) for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 0], [0, 2]), said  # the second waits a little: it finds the work done, or is refused
    assert sum("is already finished" in err or "is running in" in err for _, err in said) == 1, said
    table = pl.read_parquet(tmp_path / "kept" / "weights.parquet")
    kept = int((table["weight"] > 0).sum())
    assert len(list((tmp_path / "kept").rglob("*.png"))) == kept
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept"]
