"""Rubbish through the real command line: exit status 2, one line on stderr, nothing left behind."""

import os
import resource
import shutil

import numpy as np
import polars as pl
import pytest

from tests.conftest import write_image


def table(root, **columns):
    """A table over 40 good images, with columns replaced or, if None, left out."""
    for k in range(40):
        if not (root / "i" / f"{k}.png").exists():
            write_image(root / "i" / f"{k}.png", (10, 200, 10), seed=k)
    base = {"path": [f"i/{k}.png" for k in range(40)], "label": ["a", "b"] * 20, "site": ["x", "y"] * 20}
    frame = pl.DataFrame({k: v for k, v in (base | columns).items() if v is not None})
    frame.write_csv(root / "t.csv")
    return ["t.csv"]


def npz(root, **arrays):
    np.savez(root / "a.npz", **arrays)
    return ["a.npz"]


def empty(root):
    (root / "photos").mkdir()
    return ["photos"]


def hollow_class(root):
    write_image(root / "photos" / "cat" / "1.png", (1, 2, 3))
    (root / "photos" / "dog").mkdir()
    return ["photos"]


def one_class(root):
    for k in range(5):
        write_image(root / "photos" / "cat" / f"{k}.png", (1, 2, 3))
    return ["photos"]


def undecodable(root):
    words = table(root)
    (root / "i" / "7.png").write_bytes(b"this is no picture")
    return words


def other_run(root):
    (root / "run").mkdir()
    (root / "run" / "config.json").write_text('{"config": {"seed": 7}, "data": {}}')
    return ["toy"]


def full_of_something(root):
    (root / "run").mkdir()
    (root / "run" / "thesis.txt").write_text("years of work")
    return ["toy"]


X, Y = np.random.default_rng(0).random((40, 3)), np.array([0, 1] * 20)
CASES = {
    "no such source": (lambda r: ["nosuch"], "unknown source 'nosuch'"),
    "nearly a source": (lambda r: ["colored-mnits"], "did you mean 'colored-mnist'"),
    "empty folder": (empty, "no folders in it"),
    "class folder with no image": (hollow_class, "dog: class folder without images"),
    "one class only": (one_class, "only one class (cat)"),
    "no path column": (lambda r: table(r, path=None), "no path column"),
    "no label column": (lambda r: table(r, label=None), "no label column; it has path, site"),
    "no named label column": (lambda r: [*table(r), "--label", "lable"], "no label column 'lable'; did you mean 'label'"),
    "no named bias column": (lambda r: [*table(r), "--bias", "sight"], "no bias column 'sight'"),
    "no named split column": (lambda r: [*table(r), "--split", "fold"], "no split column 'fold'"),
    "wrong split word": (lambda r: table(r, split=["train"] * 39 + ["tets"]), "row 40 has split 'tets'"),
    "path that does not exist": (lambda r: table(r, path=["i/0.png"] * 39 + ["i/99.png"]), "'i/99.png' in row 40"),
    "image that cannot be decoded": (undecodable, "7.png: not an image"),
    "missing labels": (lambda r: table(r, label=["a", None] + ["b"] * 38), "1 rows have no label in column 'label', first in row 2"),
    "one class in a table": (lambda r: table(r, label=["a"] * 40), "only one class (a)"),
    "npz with mismatched lengths": (lambda r: npz(r, x=X, y=Y[:30]), "'x' has 40 rows but 'y' has 30"),
    "npz with NaN": (lambda r: npz(r, x=np.where(X > 0.99, np.nan, X), y=Y), "NaN or infinity in"),
    "npz with objects": (lambda r: npz(r, x=X, y=np.array([{}] * 40, dtype=object)), "array 'y' cannot be used"),
    "npz that is none": (lambda r: [(r / "a.npz").write_text("hello") and "a.npz"], "not an .npz archive"),
    "unknown method": (lambda r: ["toy", "--method", "erv"], "no method 'erv'; did you mean 'erm'"),
    "unknown model": (lambda r: ["toy", "--model", "mpl"], "no model 'mpl'; did you mean 'mlp'"),
    "unknown key": (lambda r: ["toy", "train.epoch=3"], "unknown setting 'train.epoch'; did you mean 'epochs'"),
    "unknown key of the method": (lambda r: ["toy", "gamma=3"], "unknown setting 'method.gamma'"),
    "unknown key of the data": (lambda r: ["toy:rowz=3"], "unknown setting 'rowz'; did you mean 'rows'"),
    "wrong type": (lambda r: ["toy", "train.epochs=many"], "train.epochs=many: must be a number"),
    "wrong choice": (lambda r: ["toy", "optim.name=sgdd"], "optim.name=sgdd: must be one of sgd"),
    "wrong duration": (lambda r: ["toy", "train.checkpoint=soon"], "write it as '3 epochs'"),
    "not a setting": (lambda r: ["toy", "epochs"], "'epochs' is not a setting"),
    "another run there": (other_run, "holds another run"),
    "something else there": (full_of_something, "exists and is not a run"),
    "no weights file": (lambda r: ["toy", "--weights", "w.parquet"], "no table 'w.parquet'"),
    "no validation split": (lambda r: ["biased-mnist:base=digits", "select.rule=val-accuracy"], "needs a val split"),
    "a loss that overflows": (lambda r: ["toy", "optim.name=sgd", "optim.lr=1e30"], "not finite at step 1: ce ="),
}  # fmt: skip
KEEPS = {"a loss that overflows"}  # the log of what happened stays


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_left(case, unskew, tmp_path):
    prepare, expected = CASES[case]
    words = prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = unskew("train", *words, "--out", "run", expect=2)
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("unskew: ")
    assert done.stdout == ""
    if case not in KEEPS:
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "nowhere"], "is not a run"),
        (["report", "nowhere", "--out", "p.html"], "is not a run"),
        (["report", "nowhere", "--out", "p.txt"], "end in .html"),
        (["data", "nosuch", "--out", "d"], "unknown source"),
        (["list", "methds"], "did you mean 'methods'"),
        (["explain", "erv"], "did you mean 'erm'"),
        (["trian"], "No such command 'trian'"),
        (["train"], "no source: name one"),
    ],
)
def test_other_verbs(words, expected, unskew, tmp_path):
    done = unskew(*words, expect=2)
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def _tiny_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def test_a_disk_that_fills_up(unskew, tmp_path):
    done = unskew("train", "toy", "--out", "run", expect=2, preexec_fn=_tiny_files)
    assert "the disk is full" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(unskew, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    done = unskew("train", "toy", "--out", "locked/run", expect=2)
    assert "Permission denied" in done.stderr


def test_an_undecodable_image_within_the_share_is_listed_in_the_run(unskew, tmp_path):
    undecodable(tmp_path)
    unskew("train", "t.csv", "data.max_bad=0.05", "train.epochs=1", "--out", "run")
    assert "7.png" in (tmp_path / "run" / "done.json").read_text()
    shutil.rmtree(tmp_path / "run")
    unskew("train", "t.csv", "data.max_bad=0.05", "data.mode=stream", "train.epochs=1", "--out", "run")
    assert "7.png" in (tmp_path / "run" / "done.json").read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["./missing.csv"], "unknown source './missing.csv'"),
        (["missing.npz"], "unknown source 'missing.npz'"),
        (["toy", "--method", "./x.py"], "no module './x.py'"),
        (["toy", "train.epochs=nan"], "must be a number"),
        (["toy", "optim.betas=[0.9"], "is not a list"),
        (["colored-mnist:base=digits", "--model", "convnet1", "train.batch=1"], "at least two rows"),
    ],
)
def test_more_bad_input(words, expected, unskew, tmp_path):
    done = unskew("train", *words, "--out", "r", expect=2)
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()
