"""A finished run, opened again."""

import json

import numpy as np
import torch

import unskew as package
from unskew.models._contract import maker
from unskew.records import Run
from unskew.training.finished import own_data


def test_a_finished_run_does_not_need_the_file_of_its_first_weights(tmp_path):
    torch.save(maker("resnet", {"width": 4}, (3, 28, 28), 10)().state_dict(), tmp_path / "w.pth")
    settings = {"model.width": 4, "model.weights": str(tmp_path / "w.pth"), "train.steps": 2, "train.batch": 16}
    run = package.train("colored-mnist:base=digits", model="resnet", out=tmp_path / "run", settings=settings)
    first = package.evaluate(run).metrics["plain"]
    (tmp_path / "w.pth").unlink()
    assert package.evaluate(run).metrics["plain"] == first  # scaled as in training, though the weights' file is gone


def test_a_run_from_before_val_was_carved_finds_its_splits_again(tmp_path):
    """Version 0.2 left a table with train and test without val, and knew no setting `duplicates`."""
    rng = np.random.default_rng(0)
    part = np.array(["train"] * 40 + ["test"] * 20)
    np.savez(tmp_path / "d.npz", x=rng.normal(size=(60, 4)), y=np.arange(60) % 2, split=part)
    settings = {"train.steps": 2, "train.batch": 8, "data.holdout": 0}
    run = package.train(str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "run", settings=settings)
    record = json.loads((tmp_path / "run" / "config.json").read_text())
    record["config"]["data"]["holdout"] = 0.1
    for name in ("duplicates", "group", "order"):
        del record["config"]["data"][name]
    (tmp_path / "run" / "config.json").write_text(json.dumps(record))
    assert own_data(Run(run.path)).split.bincount().tolist() == [40, 0, 20]


def test_another_source_needs_no_group_column(tmp_path):
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(60, 4)), "y": np.arange(60) % 2}
    np.savez(tmp_path / "own.npz", **rows, patient=np.arange(60) // 2)
    np.savez(tmp_path / "other.npz", **rows)
    settings = {"train.steps": 2, "train.batch": 8, "data.group": "patient"}
    run = package.train(str(tmp_path / "own.npz"), model="mlp", out=tmp_path / "run", settings=settings)
    assert package.evaluate(run, tmp_path / "other.npz").groups.plain.n == 60
