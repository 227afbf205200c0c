"""Judging elsewhere: other sources, other folders, several bias columns, data from Python."""

import json

import numpy as np
import pytest

import unskew as package
from unskew.core.errors import UserError

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
    with pytest.raises(UserError, match="trained on data passed from Python"):
        package.evaluate(run)
    assert package.evaluate(run, Rows()).groups.bias_names == ("bias",)
    package.report(run, tmp_path / "p.html", on=Rows())
    data = package.load(str(write(tmp_path / "d.npz")), bias="site")
    kept = package.train(data, out=tmp_path / "k", settings={"train.epochs": 1})
    assert package.evaluate(kept).groups.bias_names == ("site",)
