"""The verb train: resumed after SIGKILL, in several processes, after a repair, with several labels, clips and a user's own network."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
import torch

import unskew as package
from tests.support.runs import same
from unskew.core.errors import UserError
from unskew.data import sources
from unskew.records import Run, Table

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


def test_denoise_comes_before_any_method(tmp_path):
    noisy = f"{SOURCE},noise=0.1"
    settings = SHORT | {"denoise.train.epochs": "3", "denoise.factor": "1.1", "upweight": "3", "first": "2"}
    run = package.train(noisy, "denoise+jtt", model="convnet1", out=tmp_path / "run", settings=settings, force=True)
    table = Table.read(tmp_path / "run-clean.parquet")
    dropped = int((table.column("weight") == 0).sum())
    assert dropped > 0
    assert table.made_by["settings"]["factor"] == 1.1
    whole = len(package.load(noisy).rows("train"))
    assert run.config["data"]["rows"]["train"] == whole - dropped
    assert run.config["data"]["rows"]["dropped"] == dropped
    assert Run(tmp_path / "run-first").config["data"]["rows"]["dropped"] == dropped
    package.evaluate(run)  # reads its data again, by itself
    with pytest.raises(UserError, match="only denoise or balance can come before a method"):
        package.train(SOURCE, "repair+erm", out=tmp_path / "x")
    with pytest.raises(UserError, match="another source"):
        package.train("toy", "erm", out=tmp_path / "x", settings={"data.keep": str(tmp_path / "run-clean.parquet")})


def test_balance_before_a_method(tmp_path):
    source = "tiles:base=digits,rows=400,ratio=4"
    settings = {"train.steps": "2", "train.batch": "32", "balance.alpha": "1.5"}
    run = package.train(source, "balance+erm", out=tmp_path / "run", settings=settings)
    data = package.load(source)
    table = Table.read(tmp_path / "run-balanced.parquet")
    kept = table.index[table.column("weight") > 0]
    assert len(kept) < len(data.rows("train"))
    women, men = (data.y[kept][data.bias[kept, 0] == value].sum(0) for value in (0, 1))
    assert bool((torch.maximum(women, men) <= 1.5 * torch.minimum(women, men)).all())
    assert run.config["facts"]["rows"] == len(kept)


def test_what_is_wrong_behind_a_prefix_is_told_before_the_repair(tmp_path):
    for method, settings, said in (
        ("balance+nosuch", {}, "no method 'nosuch'"),
        ("balance+erm", {"nosuch": 1}, "unknown setting 'method.nosuch'"),
        ("balance+denoise+erm", {}, "can come before a method"),
    ):
        with pytest.raises(UserError, match=said):
            package.train(SOURCE, method, out=tmp_path / "x", settings=settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
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
        SOURCE,
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
        model="tests.support.clip_network",
        settings={"train.epochs": 30, "optim.lr": 0.02, "data.augment": "flip"},
    )
    assert package.evaluate(run).groups.plain.value > 0.8


@pytest.mark.parametrize(
    ("method", "remembered", "said"),
    [
        ("lff", (False, "nothing explains the errors", ""), True),
        ("pgd", (False, "nothing explains the errors", ""), True),
        ("lff", (True, "colour", ""), False),
        ("lff", None, False),  # never tried
        ("erm", (False, "nothing explains the errors", ""), False),
    ],
)
def test_a_method_that_favours_errors_says_what_a_trial_found(method, remembered, said, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr("unskew.core.progress.say", lines.append)
    monkeypatch.setattr("unskew.verbs.train.trial_on", lambda data: remembered)
    words = {"train.steps": 2, "train.batch": 16} | ({"epochs": 0.1} if method == "pgd" else {})
    package.train(SOURCE, method, out=tmp_path / "run", settings=words, force=True)
    doubt = f"{method} favours rows that a biased model gets wrong, but a trial on held-out rows found no shortcut worth balancing here"
    assert any(line.startswith(doubt) for line in lines) == said


def test_stages_read_their_source_once(tmp_path, monkeypatch):
    source, read = "colored-mnist:base=digits,ratio=0.9,digits=3,5,8", []
    made = sources._loaded
    monkeypatch.setattr(sources, "_loaded", lambda source, *rest: (read.append(source), made(source, *rest))[1])
    package.train(source, "jtt", model="convnet1", out=tmp_path / "run", settings={"train.steps": 2, "train.batch": 16})
    assert read == [source]
    assert sources._remembered is None  # nothing is held afterwards
