"""The verb train: resume after SIGKILL, several processes, selection, schedules, weights, precision."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import torch

import unskew as package
from unskew.core import checkpoint, workplace
from unskew.core.errors import UserError
from unskew.records import Run, Table
from unskew.training.optim import OptimConfig, make_optimizer, schedule_factor
from unskew.training.selection import score
from unskew.training.state import State

SMALL = {"train.epochs": 2, "train.batch": 64}
DIGITS = "colored-mnist:base=digits,ratio=0.95"


def weights(run):
    return checkpoint.read(Path(run) / "model.safetensors")[0]


def same(a, b):
    one, two = weights(a), weights(b)
    assert one.keys() == two.keys()
    for k in one:
        torch.testing.assert_close(one[k], two[k], msg=k, rtol=0, atol=0)


def test_killed_at_random_moments_it_ends_with_the_same_weights(tmp_path):
    command = [
        sys.executable, "-m", "unskew", "train", "toy", "--method", "lff", "train.steps=3000", "train.batch=32",
        "train.checkpoint=150 steps", "train.log_every=10", "select.rule=val-accuracy", "model.dropout=0.2",
    ]  # fmt: skip
    subprocess.run([*command, "--out", str(tmp_path / "straight")], check=True, capture_output=True)
    chance, log = random.Random(0), tmp_path / "killed" / "log.jsonl"
    for kill in range(4):
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "killed")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        until = 600 * (kill + 1) + chance.randrange(150)
        while process.poll() is None and (not log.exists() or f'"step": {until // 10 * 10},' not in log.read_text()):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1]
        assert process.returncode == -signal.SIGKILL
        assert ("resuming at step" in said) == (kill > 0)
    subprocess.run([*command, "--out", str(tmp_path / "killed")], check=True, capture_output=True)
    same(tmp_path / "straight", tmp_path / "killed")
    assert Run(tmp_path / "straight").outcome["selection"] == Run(tmp_path / "killed").outcome["selection"]
    assert not list((tmp_path / "killed").glob(".*.part"))


def test_two_processes_give_the_same_group_table(tmp_path, unskew):
    # In double precision: in single, sums in another order may turn a row that is nearly undecided.
    words = [
        "train",
        DIGITS,
        "--model",
        "convnet1",
        "train.epochs=2",
        "train.batch=64",
        "data.augment=pgd",
        "train.precision=64-true",
    ]
    unskew(*words, "--out", "one")
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "unskew", *words, "--out", "two"],
        check=True, capture_output=True, cwd=tmp_path, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    tables = [json.loads(unskew("evaluate", name, "--json").stdout) for name in ("one", "two")]
    assert Run(tmp_path / "two").config["processes"] == 2
    for key in ("plain", "aligned", "conflicting", "groups"):
        assert tables[0][key] == tables[1][key]
    # Not the weights: a convolution's bias before a normalisation has no effect, and Adam turns its rounding noise into steps.
    one, two = (Table.read(tmp_path / name / "predictions" / "test.parquet").column("logits") for name in ("one", "two"))
    torch.testing.assert_close(one, two, rtol=0, atol=0.1)


def test_given_again_it_does_nothing_and_another_run_is_refused(tmp_path):
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    before = (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    assert (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(UserError, match=r"holds another run \(config.train.batch is 64 there and 32 here\)"):
        package.train("toy", out=tmp_path / "r", settings=SMALL | {"train.batch": 32})
    record = json.loads((tmp_path / "r" / "config.json").read_text())
    del record["config"]["data"]["keep"], record["config"]["method"]["class_weights"]  # made before these settings existed
    (tmp_path / "r" / "config.json").write_text(json.dumps(record))
    package.train("toy", out=tmp_path / "r", settings=SMALL)
    assert (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns == before


def test_the_seed_decides_everything(tmp_path):
    package.train("toy", out=tmp_path / "a", settings=SMALL, seed=1)
    torch.manual_seed(99)  # what the caller did with the global generator does not matter
    package.train("toy", out=tmp_path / "b", settings=SMALL, seed=1)
    package.train("toy", out=tmp_path / "c", settings=SMALL, seed=2)
    same(tmp_path / "a", tmp_path / "b")
    assert not torch.equal(weights(tmp_path / "a")["model.head.weight"], weights(tmp_path / "c")["model.head.weight"])


@pytest.mark.parametrize("rule", ["last", "val-accuracy", "val-worst-class", "val-worst-group", "oracle"])
def test_selection_rules_are_recorded_with_the_labels_they_use(rule, tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings=SMALL | {"select.rule": rule})
    assert run.outcome["selection"]["rule"] == rule
    assert run.outcome["selection"]["labels"] == {"last": [], "oracle": ["y", "bias"], "val-worst-group": ["y", "bias"]}.get(
        rule, ["y"]
    )
    looked = {row["kind"] for row in run.log()} - {"train"}
    assert looked == ({"test"} if rule == "oracle" else {"val"})  # the test split is touched by the oracle only


def test_scores_of_the_rules_by_hand():
    data = package.load("toy")
    index = torch.tensor([0, 1, 2, 3])
    object.__setattr__(data, "y", torch.tensor([0, 0, 0, 1, *[2] * (len(data) - 4)]))
    object.__setattr__(data, "bias", torch.tensor([[0], [0], [1], [1], *[[2]] * (len(data) - 4)]))
    logits = torch.eye(3)[torch.tensor([0, 0, 1, 1])]  # right, right, wrong, right
    assert score("val-accuracy", logits, data, index) == 0.75
    assert score("val-worst-class", logits, data, index) == pytest.approx(2 / 3)
    assert score("val-worst-group", logits, data, index) == 0.0
    assert score("oracle", logits, data, index) == pytest.approx((1 + 0 + 1) / 3)


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


def test_schedules_by_hand():
    step = OptimConfig(schedule="step", decay=0.5, every="2 epochs")
    assert [schedule_factor(step, s, 100, 10) for s in (0, 19, 20, 45)] == [1, 1, 0.5, 0.25]
    milestones = OptimConfig(schedule="milestones", decay=0.1, milestones=("50%", "70 steps"))
    assert [schedule_factor(milestones, s, 100, 10) for s in (49, 50, 70)] == pytest.approx([1, 0.1, 0.01])
    cosine = OptimConfig(schedule="cosine", warmup="10 steps")
    assert schedule_factor(cosine, 4, 100, 10) == pytest.approx(0.5 * 0.5 * (1 + math.cos(math.pi * 0.04)))


def test_the_rate_reaches_the_optimiser(tmp_path):
    run = package.train(
        "toy",
        out=tmp_path / "r",
        settings={"optim.lr": 0.1, "optim.schedule": "cosine", "train.steps": 100, "train.log_every": 50},
    )
    rates = {row["step"]: row["lr"] for row in run.log() if row["kind"] == "train"}
    assert rates[51 - 1] == pytest.approx(0.1 * 0.5 * (1 + math.cos(math.pi * 0.49)))


def test_sgd_step_by_hand():
    w = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = make_optimizer([w], OptimConfig(name="sgd", lr=0.1, momentum=0.9, weight_decay=0.5))
    for gradient in (1.0, 1.0):
        w.grad = torch.tensor([gradient])
        optimizer.step()
    # v1 = 1 + .5 = 1.5, w = .85; v2 = .9 * 1.5 + 1 + .425 = 2.775, w = .5725
    assert w.item() == pytest.approx(0.5725)


def test_clipping_bounds_the_update(tmp_path):
    settings = {"optim.name": "sgd", "optim.momentum": 0, "optim.lr": 1.0, "train.steps": 1}
    before = package.train("toy", out=tmp_path / "a", settings=settings | {"train.clip": 1e-9})
    after = package.train("toy", out=tmp_path / "b", settings=settings | {"train.clip": 0.01})
    moved = sum(
        float((a - b).square().sum())
        for a, b in zip(weights(before.path).values(), weights(after.path).values(), strict=True)
        if a.is_floating_point()
    )
    assert math.sqrt(moved) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_precisions_train_and_can_be_judged(precision, tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings=SMALL | {"train.precision": precision, "train.epochs": 10})
    assert package.evaluate(run).groups.aligned.value > 0.9


@pytest.mark.parametrize("method", ["reweight", "lff"])
def test_a_method_never_hears_of_rows_that_the_weights_drop(tmp_path, method):
    source = "colored-mnist:base=digits,ratio=0.9"
    data = package.load(source)
    train = data.rows("train")
    kept = train[data.bias[train, 0] < 5]
    table = Table(pl.DataFrame({"index": kept.numpy(), "weight": [1.0] * len(kept)}), {"fingerprint": data.fingerprint})
    run = package.train(source, method, model="convnet1", out=tmp_path / "run", weights=table, settings={"train.epochs": 1})
    facts = run.config["facts"]
    assert facts["rows"] == len(kept)
    assert facts["class_counts"] == data.y[kept].bincount(minlength=10).tolist()
    if method == "reweight":
        assert facts["group_counts"] == data.group[kept].bincount(minlength=100).tolist()


def test_weights_act_as_loss_weights_or_as_chances_and_zero_drops_a_row(tmp_path):
    data = package.load("toy")
    train = data.rows("train")
    keep = (data.y[train] < 2).double()  # class 2 gets no weight: it must never be predicted
    table = Table(pl.DataFrame({"index": train.numpy(), "weight": keep.numpy()}), {"fingerprint": data.fingerprint})
    for how in ("loss", "sampler"):
        run = package.train("toy", out=tmp_path / how, weights=table, settings={"train.epochs": 10, "train.weights": how})
        logits = package.evaluate(run).predictions.column("logits")
        assert (logits.argmax(1) < 2).all()
    other = Table(table.frame, {"fingerprint": "0" * 32})
    with pytest.raises(UserError, match="made for another source"):
        package.train("toy", out=tmp_path / "x", weights=other, settings=SMALL)


def test_balanced_sampling_is_said_to_use_the_bias(tmp_path):
    run = package.train(DIGITS, out=tmp_path / "r", model="mlp", settings=SMALL | {"train.sampler": "balanced"})
    assert run.config["labels"]["training"] == ["bias", "y"]


def test_multi_label_through_the_pipe(tmp_path, folder):
    paths = [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)]
    frame = pl.DataFrame({"path": paths, "red": [1] * 12 + [0] * 12, "blue": [0] * 12 + [1] * 12, "site": ["x", "y"] * 12})
    frame.write_csv(folder / "t.csv")
    settings = {"data.label": "red,blue", "data.bias": "site", "train.epochs": 30, "data.holdout": 0.25}
    run = package.train(str(folder / "t.csv"), out=tmp_path / "r", model="mlp", settings=settings)
    found = package.evaluate(run)
    assert found.metrics["f1_macro"] == 1.0
    assert found.metrics["average_precision"] == 1.0
    package.report(run, tmp_path / "p.html")


def test_clips_and_own_networks_go_through(tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    y = np.array([0, 1] * 30)
    clips = (rng.random((60, 4, 3, 8, 8)) * 100 + 100 * y[:, None, None, None, None]).astype(np.uint8)
    np.savez(tmp_path / "c.npz", x=clips, y=y)
    run = package.train(
        str(tmp_path / "c.npz"),
        out=tmp_path / "r",
        model="tests.clip_network",
        settings={"train.epochs": 30, "optim.lr": 0.02, "data.augment": "flip"},
    )
    assert package.evaluate(run).groups.plain.value > 0.8


def test_log_lines_are_json_and_cover_the_run(tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings={"train.steps": 120, "train.log_every": 50})
    steps = [row["step"] for row in run.log() if row["kind"] == "train"]
    assert steps == [1, 50, 100, 120]


def test_a_folder_takes_one_training_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(workplace, "PATIENCE", 0.2)
    short = {"train.steps": 3, "train.batch": 64}
    with workplace.alone(tmp_path / "run", "training"), pytest.raises(UserError, match="another training is at work in"):
        package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short)
    assert package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short).finished


@pytest.mark.parametrize(("seconds", "saves"), [(0.0, 5), (1e9, 2)])
def test_a_slow_training_is_saved_by_the_clock_too(tmp_path, monkeypatch, seconds, saves):
    done = []
    real = State._save
    monkeypatch.setattr(State, "_save", lambda self, step: (done.append(step), real(self, step)))
    monkeypatch.setattr("unskew.training.state.SAVE_SECONDS", seconds)
    short = {"train.steps": 6, "train.batch": 64, "train.checkpoint": "2 steps"}
    package.train("toy:rows=300", "erm", model="mlp", out=tmp_path / "run", settings=short)
    assert done == ([1, 2, 3, 4, 5] if saves == 5 else [2, 4])
