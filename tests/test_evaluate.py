"""Judging elsewhere: other sources, other folders, several bias columns, data from Python."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.pages.collect import difference, short_names, verdict
from unskew.records import Estimate, Run

QUICK = {"train.epochs": 15, "optim.lr": 0.01}


def write(path, n=400, flip=False, classes=("a", "b"), split=None, seed=0, bias=True):
    """x = (weak signal, strong bias); the bias agrees with the class in 90 % of rows, or in 10 % if flipped."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(classes), n)
    b = np.where(rng.random(n) < (0.1 if flip else 0.9), y, 1 - y)
    x = np.stack([y + 0.9 * rng.standard_normal(n), 3 * b + 0.1 * rng.standard_normal(n)], 1)
    columns = {"site": np.array(["p", "q"])[b]} if bias else {}
    np.savez(path, x=x, y=np.array(classes)[y], **columns, **({"split": np.array([split] * n)} if split else {}))
    return path


@pytest.fixture
def run(tmp_path):
    return package.train(str(write(tmp_path / "d.npz", 2000)), out=tmp_path / "r", settings=QUICK | {"data.bias": "site"})


def test_another_source_is_judged_whole_and_by_the_alignment_of_training(run, tmp_path):
    own = package.evaluate(run).groups
    other = package.evaluate(run, str(write(tmp_path / "o.npz", 300, flip=True, seed=5))).groups
    assert other.plain.n == 300  # no splits of its own: all rows are new to the model
    # In the other set the bias mostly points away; what counts as aligned is still what training taught.
    assert other.aligned.n < 60
    assert other.aligned.value > other.conflicting.value
    assert own.aligned.value == pytest.approx(other.aligned.value, abs=0.1)
    only_test = package.evaluate(run, str(write(tmp_path / "t.npz", 200, split="test", seed=6))).groups
    assert only_test.plain.n == 200


def test_another_source_may_lack_the_bias_and_some_classes_but_not_add_any(run, tmp_path):
    found = package.evaluate(run, str(write(tmp_path / "n.npz", 100, bias=False))).groups
    assert found.bias_names == ()
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "one.npz", x=rng.random((50, 2)), y=np.array(["b"] * 49 + ["a"]))
    assert package.evaluate(run, str(tmp_path / "one.npz")).groups.plain.n == 50
    with pytest.raises(UserError, match="class 'z', which the run does not know"):
        package.evaluate(run, str(write(tmp_path / "z.npz", 100, classes=("b", "z"))))


def test_a_run_can_be_judged_from_another_folder_and_by_a_relative_path(tmp_path, unskew):
    write(tmp_path / "d.npz")
    unskew("train", "d.npz", "--bias", "site", "train.epochs=1", "--out", "r")
    (tmp_path / "sub").mkdir()
    assert json.loads(unskew("evaluate", "../r", "--json", cwd=tmp_path / "sub").stdout)["bias_columns"] == ["site"]
    unskew("train", tmp_path / "d.npz", "--bias", "site", "train.epochs=1", "--out", "../r", cwd=tmp_path / "sub")  # the same run


def test_a_run_folder_does_not_get_in_the_way_of_its_source(tmp_path, unskew, folder):
    unskew("train", "toy", "train.epochs=1", "--out", "toy")
    unskew("evaluate", "toy")
    unskew("train", ".", "train.epochs=1", "--model", "mlp", "--out", "run", cwd=folder)
    unskew("evaluate", "run", cwd=folder)


def test_several_bias_columns_each_get_a_table(tmp_path):
    write(tmp_path / "d.npz", 1500)
    arrays = dict(np.load(tmp_path / "d.npz"))
    np.savez(tmp_path / "d.npz", **arrays, camera=np.random.default_rng(1).integers(0, 3, 1500))
    run = package.train(str(tmp_path / "d.npz"), out=tmp_path / "r", settings=QUICK | {"data.bias": "site,camera"})
    found = package.evaluate(run)
    assert set(found.by_bias) == {"site", "camera"}
    assert found.by_bias["site"].aligned.value > found.by_bias["site"].conflicting.value + 0.1
    page = package.report(run, tmp_path / "p.html").read_text()
    assert page.count('class="heat"') == 2


def test_data_from_python_is_judged_when_given_again(tmp_path):
    class Rows:
        def __len__(self):
            return 60

        def __getitem__(self, k):
            return np.array([k % 2, k / 60], dtype=np.float32), k % 2, k % 3

    run = package.train(Rows(), out=tmp_path / "r", settings={"train.epochs": 2})
    with pytest.raises(UserError, match="trained on data from Python"):
        package.evaluate(run)
    assert package.evaluate(run, Rows()).groups.bias_names == ("bias",)
    package.report(run, tmp_path / "p.html", on=Rows())
    data = package.load(str(write(tmp_path / "d.npz")), bias="site")
    kept = package.train(data, out=tmp_path / "k", settings={"train.epochs": 1})
    assert package.evaluate(kept).groups.bias_names == ("site",)


def test_runs_of_the_same_name_can_be_told_apart(tmp_path):
    for name in ("e1", "e2"):
        package.train("toy", out=tmp_path / name / "erm", settings={"train.epochs": 1})
    runs = [Run(tmp_path / name / "erm") for name in ("e1", "e2")]
    assert short_names(runs) == ["e1/erm", "e2/erm"]
    assert short_names(runs[:1]) == ["erm"]


def test_the_verdict_does_not_claim_what_few_rows_cannot_show():
    few = Estimate(1.0, 0.34, 1.0, 2), Estimate(1.0, 0.34, 1.0, 2)
    _, low, high = difference(*few)
    assert low < -0.5
    assert high > 0.5
    import torch

    y = torch.tensor([0, 0, 1, 1])
    found = package.measure.groups(y, y, torch.tensor([0, 1, 1, 0]), aligned=[torch.eye(2).bool()])
    assert verdict(found).startswith("Too few rows to tell")


def test_ctrl_c_stops_with_its_own_status_and_the_run_goes_on(tmp_path):
    command = [sys.executable, "-m", "unskew", "train", "toy", "train.steps=3000", "train.batch=32", "--out", str(tmp_path / "r")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    while not (tmp_path / "r" / "state.safetensors").exists():
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "give the same command again" in said
    assert "Traceback" not in said
    assert "resuming at step" in subprocess.run(command, capture_output=True, text=True, check=True).stderr
    shutil.rmtree(tmp_path / "r")


@pytest.mark.parametrize("device", ["cuda", "foo", "mps", "cpu:1", ""])
def test_devices_that_are_not_there(device, tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings={"train.steps": 2})
    with pytest.raises(UserError, match="device"):
        package.evaluate(run, device=device)
    with pytest.raises(UserError, match="device"):
        package.train("toy", out=tmp_path / "x", settings={"train.steps": 2}, device=device)
    assert not (tmp_path / "x").exists()


def test_noise_follows_the_seed_of_the_set():
    a, b = (package.load(f"colored-mnist:base=digits,noise=0.1,seed={seed}") for seed in (0, 1))
    clean = package.load("digits").y
    assert not np.array_equal((a.y != clean).numpy(), (b.y != clean).numpy())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["./missing.csv"], "no such source './missing.csv'"),
        (["missing.npz"], "no such source 'missing.npz'"),
        (["toy", "--method", "./x.py"], "no module './x.py'"),
        (["toy", "train.epochs=nan"], "must be a number"),
        (["toy", "optim.betas=[0.9"], "is not a list"),
        (["colored-mnist:base=digits", "train.batch=1"], "at least two rows"),
    ],
)
def test_more_bad_input(words, expected, unskew, tmp_path):
    done = unskew("train", *words, "--out", "r", expect=2)
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()
