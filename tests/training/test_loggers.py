"""Loggers besides log.jsonl: what MLflow and Weights & Biases are given, and that none of them can end a training."""

import sys
import types

import pytest

import unskew
from unskew.core.errors import UserError
from unskew.training.loggers import Guarded, identity_of, open_boards

SHORT = {"train.steps": 4, "train.log_every": 2, "train.batch": 16}


class Recorder(types.ModuleType):
    """Stands in for the package wandb: it keeps what it is given."""

    def __init__(self, fails=False):
        super().__init__("wandb")
        self.started, self.lines, self.ended, self.fails = [], [], 0, fails

    def init(self, **words):
        self.started.append(words)
        return self

    def log(self, values, step):
        if self.fails:
            raise OSError("no connection")
        self.lines.append((step, values))

    def finish(self):
        self.ended += 1


def test_wandb_is_given_every_line_of_the_log(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", wandb := Recorder())
    run = unskew.train("toy:rows=200", model="mlp", out=tmp_path / "run", settings=SHORT | {"train.log_to": "wandb"})
    expected = [(r["step"], {f"{r['kind']}/{k}": v for k, v in r.items() if k not in ("step", "kind")}) for r in run.log()]
    assert wandb.lines == expected
    assert expected
    assert wandb.ended == 1
    (started,) = wandb.started
    assert started["config"]["train.batch"] == 16
    assert started["id"] == identity_of(tmp_path / "run")  # so that a resumed training goes on in its run


def test_a_logger_that_fails_does_not_end_the_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", wandb := Recorder(fails=True))
    run = unskew.train("toy:rows=200", model="mlp", out=tmp_path / "run", settings=SHORT | {"train.log_to": "wandb"})
    assert run.finished
    assert not wandb.lines
    alone = unskew.train("toy:rows=200", model="mlp", out=tmp_path / "alone", settings=SHORT)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (alone.path / "model.safetensors").read_bytes()


def test_mlflow_has_the_figures_and_goes_on_in_its_run(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # needs no database
    for step in (1, 2):
        (board, *_) = open_boards(tmp_path / "run", ["mlflow"], {"train": {"batch": 16}})
        board.add("train", step, {"loss": 1.0 / step})
        board.close()
    (found,) = mlflow.search_runs(experiment_names=["unskew"], output_format="list")
    assert found.data.params["train.batch"] == "16"
    assert found.data.metrics["train.loss"] == 0.5


def test_what_is_not_installed_or_unknown_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # importing it fails
    with pytest.raises(UserError, match=r"pip install 'unskew\[wandb\]'"):
        unskew.train("toy:rows=200", model="mlp", out=tmp_path / "run", settings=SHORT | {"train.log_to": "wandb"})
    with pytest.raises(UserError, match="no such logger"):
        unskew.train("toy:rows=200", model="mlp", out=tmp_path / "run", settings=SHORT | {"train.log_to": "comet"})


def test_a_failure_is_said_once():
    class Board:
        calls = 0

        def add(self, kind, step, values):
            Board.calls += 1
            raise ValueError("broken")

        def close(self):
            raise AssertionError("a board that failed is not closed")

    board = Guarded("mine", Board)
    board.add("train", 1, {})
    board.add("train", 2, {})
    board.close()
    assert Board.calls == 1
