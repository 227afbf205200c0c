"""The worker of a bench: it ends with its bench, and a run that fails is told."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import unskew as package
from tests.support.suites import GOOD
from unskew.core.errors import UserError
from unskew.suites.plan import plan
from unskew.suites.reader import read
from unskew.verbs.bench_worker import work


def test_a_worker_ends_with_its_bench(suite, tmp_path):
    """Killed alone, not with its group: what it started must not train on beside the next bench."""
    out = tmp_path / "out"
    words = [sys.executable, "-m", "unskew", "bench", str(suite), "--out", str(out), "--workers", "1", "--only", "erm"]
    process = subprocess.Popen([*words, "train.steps=100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = out / "runs" / "toy-s0-erm" / "run" / "log.jsonl"
    deadline = time.time() + 120
    while not log.is_file() and time.time() < deadline:
        time.sleep(0.05)
    with pytest.raises(UserError, match="another bench is running in"):
        package.bench(str(suite), out=out, only=["erm"], settings={"train.steps": "100000"})
    workers = [int(p.name) for p in Path("/proc").glob("[0-9]*") if f"{out}/tasks".encode() in words_of(p)]
    assert len(workers) == 1
    process.kill()
    process.wait()
    while Path(f"/proc/{workers[0]}").exists() and time.time() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{workers[0]}").exists()


def words_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_run_that_fails_is_told_and_the_others_go_on(suite, tmp_path):
    suite.write_text(GOOD.replace('biased = "{shared.biased}"', 'biased = "nowhere"'))
    found = package.bench(str(suite), out=tmp_path / "out", seeds=1).json()
    assert found["failed"] == ["toy-s0-pgd"]
    assert found["done"] == 1
    assert "nowhere" in (tmp_path / "out" / "tasks" / "toy-s0-pgd.log").read_text()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('split = "tset"', "has no split 'tset'; did you mean 'test'"),
        ("evaluate = { temporal = true }", "--temporal needs clips"),
    ],
)
def test_what_the_data_cannot_answer_is_told_before_the_training(suite, tmp_path, asked, said):
    suite.write_text(f"{asked}\n{GOOD}")
    (task,) = plan(read(str(suite)), "smoke", seeds=1, only=["erm"])
    with pytest.raises(UserError) as error:
        work(json.loads(json.dumps(task.json())), tmp_path / "run", ["plain"], {})
    assert said in str(error.value)
    assert not (tmp_path / "run").exists()
