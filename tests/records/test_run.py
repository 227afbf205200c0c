"""A run's folder, read by one reader: missing, cut, contradictory or alien content is refused with the file's name."""

import json
import shutil

import pytest

import unskew as package
from unskew.core import checkpoint
from unskew.core.errors import UserError
from unskew.records import Run

SHORT = {
    "train.steps": 6,
    "train.batch": 16,
    "train.checkpoint": "2 steps",
    "select.rule": "val-accuracy",
    "select.every": "1 steps",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return package.train("toy:rows=60", out=tmp_path_factory.mktemp("runs") / "run", model="mlp", settings=SHORT).path


def changed(tmp_path, run, file, change):
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / file
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    return Run(tmp_path / "run")


CONTRADICTIONS = {
    "no facts": ("config.json", lambda r: r.pop("facts"), "facts must be a table"),
    "a class too many": ("config.json", lambda r: r["data"]["classes"].append("more"), "contradicts itself"),
    "another shape": ("config.json", lambda r: r["data"].update(shape=[9]), "contradicts itself"),
    "classes that are numbers": (
        "config.json",
        lambda r: r["data"].update(classes=[1, 2, 3]),
        "data.classes must be a list of text",
    ),
    "a method that is a number": ("config.json", lambda r: r["config"].update(method_name=3), "config.method_name must be text"),
    "a seed that is text": ("config.json", lambda r: r["config"].update(seed="x"), "config.seed must be a whole number"),
    "settings that are unknown": ("config.json", lambda r: r["config"]["method"].update(nonsense=1), "unknown setting"),
    "steps that are text": ("done.json", lambda r: r.update(steps="six"), "steps must be a whole number"),
    "no selection": ("done.json", lambda r: r.pop("selection"), "selection must be a table"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_record_that_cannot_be_is_refused(case, tmp_path, finished):
    file, change, said = CONTRADICTIONS[case]
    run = changed(tmp_path, finished, file, change)
    with pytest.raises(UserError, match=said):
        package.evaluate(run)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"null", b"\xff\xfe"])
def test_a_damaged_outcome_is_refused_by_name(tmp_path, finished, content):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "done.json").write_bytes(content)
    with pytest.raises(UserError, match=r"done\.json"):
        package.evaluate(tmp_path / "run")


def test_alien_lines_of_a_log_are_passed_over(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "run")
    with open(tmp_path / "run" / "log.jsonl", "ab") as log:
        log.write(b'3\n[1]\n{"step": "x", "kind": "train"}\n\xff\n{"step": 9, "ki')
    assert Run(tmp_path / "run").log() == Run(finished).log()


def interrupted(tmp_path, monkeypatch):
    """A training that was interrupted at step 6, with a state at step 4."""
    from unskew.training.state import State

    def stop(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(State, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            package.train("toy:rows=60", out=tmp_path / "run", model="mlp", settings=SHORT)
    return tmp_path / "run" / "state.safetensors"


WRONG = {
    "step 10^9 of 6": ({"step": 10**9}, r"state\.safetensors claims step 1000000000 of 6"),
    "the last step": ({"step": 6}, "claims step 6 of 6"),
    "a step that is text": ({"step": "4"}, "claims step 4 of 6"),
    "a best step to come": ({"best_step": 5}, "claims that step 5 of 4 was the best"),
    "seconds before the start": ({"seconds": -1.0}, "claims -1.0 seconds"),
    "rows that do not exist": ({"unreadable": [10**6]}, "lists unreadable rows"),
    "no optimiser": ({"optimizers": {}}, "is not the state of this training"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_state_that_cannot_be_is_refused(case, tmp_path, monkeypatch):
    change, said = WRONG[case]
    path = interrupted(tmp_path, monkeypatch)
    tensors, facts = checkpoint.read(path)
    checkpoint.save(path, tensors, facts | change)
    with pytest.raises(UserError, match=said):
        package.train("toy:rows=60", out=tmp_path / "run", model="mlp", settings=SHORT)


def test_a_state_of_another_network_or_optimiser_is_refused(tmp_path, monkeypatch):
    path = interrupted(tmp_path, monkeypatch)
    tensors, facts = checkpoint.read(path)
    largest = max((name for name in tensors if name.startswith("method.")), key=lambda name: tensors[name].numel())
    checkpoint.save(path, tensors | {largest: tensors[largest][:1]}, facts)
    with pytest.raises(UserError, match=r"state\.safetensors is not the state of this training"):
        package.train("toy:rows=60", out=tmp_path / "run", model="mlp", settings=SHORT)
    next(iter(facts["optimizers"].values()))["param_groups"][0]["weight_decay"] = 0.5
    checkpoint.save(path, tensors, facts)
    with pytest.raises(UserError, match="other settings than this training"):
        package.train("toy:rows=60", out=tmp_path / "run", model="mlp", settings=SHORT)
    (path.with_name("best.safetensors")).unlink()
    with pytest.raises(UserError, match=r"best\.safetensors is missing"):
        package.train("toy:rows=60", out=tmp_path / "run", model="mlp", settings=SHORT)
