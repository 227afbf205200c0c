"""Four hostile cases through the real command line: code beside a shared run, names that lead outside, tables that collide, two at once.

Colliding tables are in tests/training/test_weights.py, two repairs on one --out at once in tests/verbs/test_two_at_once.py.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

import unskew as package
from tests.conftest import write_image
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.data.write import write
from unskew.suites.plan import plan
from unskew.suites.reader import read

SHORT = {"train.steps": 2, "train.batch": 16}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return package.train("toy:rows=60", out=tmp_path_factory.mktemp("runs") / "run", model="mlp", settings=SHORT).path


def shared(tmp_path, run, **changes):
    """A folder as somebody shares it: a run whose record names a module, and the module beside it."""
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    record = json.loads(path.read_text())
    record["config"] |= changes
    path.write_text(json.dumps(record))
    (tmp_path / "helper").mkdir()
    for name in ("__init__", "mine"):
        (tmp_path / "helper" / f"{name}.py").write_text(f"open({str(tmp_path / 'EXECUTED')!r}, 'w').close()\n")
    (tmp_path / "polars.py").write_text((tmp_path / "helper" / "mine.py").read_text())  # as if it were the library


@pytest.mark.parametrize("name", ["method_name", "model_name"])
def test_a_shared_run_with_a_helper_beside_it_runs_none_of_its_code(name, unskew, tmp_path, run):
    shared(tmp_path, run, **{name: "helper.mine"})
    done = unskew("evaluate", "run", expect=2)
    assert "config.json names the module 'helper.mine'" in done.stderr
    assert "--trust" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "EXECUTED").exists()


def test_with_trust_it_does(unskew, tmp_path, run):
    shared(tmp_path, run, method_name="helper.mine")
    unskew("evaluate", "run", "--trust", expect=2)  # the module is no method
    assert (tmp_path / "EXECUTED").exists()


def test_in_python_a_module_must_have_been_imported(tmp_path, run, monkeypatch):
    shared(tmp_path, run, model_name="helper.mine")
    (tmp_path / "polars.py").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"names the module 'helper\.mine'.*import it first"):
        package.evaluate(tmp_path / "run")
    assert not (tmp_path / "EXECUTED").exists()


def test_a_suite_names_no_module_either(suite, monkeypatch):
    suite.write_text(suite.read_text().replace('model = "mlp"', 'model = "tests.support.clip_network"'))
    monkeypatch.delitem(sys.modules, "tests.support.clip_network", raising=False)
    with pytest.raises(UserError, match=r"names the module 'tests\.support\.clip_network'"):
        plan(read(str(suite)), "smoke")
    assert "tests.support.clip_network" not in sys.modules


def test_words_of_a_command_are_names_and_paths_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.mod").mkdir()  # a run's folder, called like a module
    words = [
        "evaluate",
        "evil.mod",
        "--on",
        "my.set:rows=3",
        "--method",
        "own.mine",
        "--out",
        "a.b",
        "denoise+c.d",
        "optim.lr=0.1",
    ]
    assert registry.modules_in(words) == ["c.d", "my.set", "own.mine"]


def listing(root):
    return {str(p.relative_to(root)) for p in root.rglob("*")}


def test_a_split_name_does_not_lead_outside(unskew, tmp_path):
    home = tmp_path / "a" / "b" / "c"
    home.mkdir(parents=True)
    for k in range(40):
        write_image(home / "i" / f"{k}.png", (10, 200, 10), side=(8, 8), seed=k)
    splits = ["train"] * 20 + ["test/../../esc"] * 20
    pl.DataFrame({"path": [f"i/{k}.png" for k in range(40)], "label": ["a", "b"] * 20, "split": splits}).write_csv(home / "t.csv")
    before = listing(tmp_path)
    done = unskew("repair", "t.csv", "--as", "folder", "--out", "kept", "--with", "inverse_frequency", cwd=home, expect=2)
    assert "'test/../../esc'; allowed: train, val, test" in done.stderr
    assert listing(tmp_path) == before


def small(classes, **fields):
    x = torch.randint(0, 255, (12, 3, 4, 4), dtype=torch.uint8)
    y = torch.arange(12) % len(classes)
    return DataSet(name="small", inputs=Memory(x), y=y, classes=classes, split=torch.zeros(12, dtype=torch.long), **fields)


def test_a_data_set_cannot_have_such_a_split():
    with pytest.raises(UserError, match=r"a split cannot be called '\.\./esc'"):
        small(("a", "b"), splits=("train", "val", "../esc"))


def test_classes_do_not_lead_outside(tmp_path):
    classes = ("../../esc", "/etc", "..", "a/b", "a_b", "=1+1")
    out = tmp_path / "deep" / "out"
    write(small(classes), out, "images")
    assert {p.name for p in tmp_path.iterdir()} == {"deep"}
    assert {p.name for p in (tmp_path / "deep").iterdir()} == {"out"}
    assert len(list(out.rglob("*.png"))) == 12
    table = pl.read_csv(out / "metadata.csv")
    assert set(table["label"]) == {*classes[:5], "'=1+1"}  # the last would be a formula
    assert all((out / name).is_file() for name in table["file_name"])
    assert len({Path(name).parent for name in table["file_name"]}) == len(classes)


@pytest.mark.parametrize("seeds", ["1000000000", "0..999999999", "9" * 5000])
def test_a_bench_of_a_billion_seeds_is_refused(seeds, suite):
    with pytest.raises(UserError, match=r"too many for one bench|must be a number of seeds"):
        plan(read(str(suite)), "smoke", seeds=seeds)


def test_the_current_folder_does_not_hide_a_library(tmp_path):
    (tmp_path / "typer.py").write_text("raise SystemExit(77)\n")
    done = subprocess.run(
        [sys.executable, "-m", "unskew", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
