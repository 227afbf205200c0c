"""The state of a training: every optimiser resumes, the clock saves too, and the log covers the run."""

import pytest

import unskew as package
from tests.support.runs import same
from unskew.training.state import State


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adamp"])
def test_every_optimiser_survives_a_resume(name, tmp_path):
    settings = {"optim.name": name, "optim.weight_decay": 0.01, "train.batch": 64, "train.checkpoint": "7 steps"}
    package.train("toy", out=tmp_path / "straight", settings=settings | {"train.steps": 20})
    with pytest.raises(KeyboardInterrupt):
        package.train(Stopping("toy", 15), out=tmp_path / "broken", settings=settings | {"train.steps": 20})
    package.train(Stopping("toy", 10**9), out=tmp_path / "broken", settings=settings | {"train.steps": 20})
    same(tmp_path / "straight", tmp_path / "broken")


class Stopping:
    """A torch Dataset with the rows of a source, whose reading is interrupted after some batches."""

    def __new__(cls, source, after):
        data = package.load(source)
        inner = data.inputs

        class Inputs:
            shape, in_memory, calls = inner.shape, True, 0

            def rows(self, index):
                Inputs.calls += 1
                if Inputs.calls > after:
                    raise KeyboardInterrupt
                return inner.rows(index)

        object.__setattr__(data, "inputs", Inputs())
        return data


def test_log_lines_are_json_and_cover_the_run(tmp_path):
    run = package.train("toy", model="mlp", out=tmp_path / "r", settings={"train.steps": 120, "train.log_every": 50})
    steps = [row["step"] for row in run.log() if row["kind"] == "train"]
    assert steps == [1, 50, 100, 120]


@pytest.mark.parametrize(("seconds", "saves"), [(0.0, 5), (1e9, 2)])
def test_a_slow_training_is_saved_by_the_clock_too(tmp_path, monkeypatch, seconds, saves):
    done = []
    real = State._save
    monkeypatch.setattr(State, "_save", lambda self, step: (done.append(step), real(self, step)))
    monkeypatch.setattr("unskew.training.state.SAVE_SECONDS", seconds)
    short = {"train.steps": 6, "train.batch": 64, "train.checkpoint": "2 steps"}
    package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short)
    assert done == ([1, 2, 3, 4, 5] if saves == 5 else [2, 4])
