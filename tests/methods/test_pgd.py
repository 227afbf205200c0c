"""PGD: each stage's result is there, is used, and is not made twice."""

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.methods.pgd import default_patience
from unskew.records import Run, Table

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


def stamps(folder):
    return {p.name: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def test_pgd_trains_on_rows_drawn_by_the_scores_of_a_biased_model(tmp_path):
    settings = SHORT | {"epochs": "2", "k": "20", "lambda_": "0.5"}
    run = package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=settings)
    biased = Run(tmp_path / "run-biased")
    assert biased.config["config"]["method_name"] == "gce"
    assert biased.outcome["steps"] == 2 * 21  # 1,296 rows in batches of 64
    table = Table.read(tmp_path / "run-scores.parquet")
    assert table.made_by["run"] == str(biased.path)
    assert table.made_by["settings"]["lambda_"] == 0.5
    data = package.load(SOURCE)
    weight = table.column("weight")
    conflicting = (data.y != data.bias[:, 0])[table.index]
    assert weight[conflicting].mean() > weight[~conflicting].mean()
    assert run.config["config"]["train"]["weights"] == "sampler"
    assert run.config["config"]["data"]["augment"] == "pgd"
    before = stamps(tmp_path)
    again = package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=settings)
    assert again.path == run.path
    assert stamps(tmp_path) == before
    shared = package.train(
        SOURCE, "pgd", model="convnet1", out=tmp_path / "warm",
        settings=settings | {"biased": str(biased.path), "warm": "true"},
    )  # fmt: skip
    assert not (tmp_path / "warm-biased").exists()
    assert shared.config["config"]["train"]["start"] == str(biased.path)


def test_pgd_obeys_the_augmentation_and_the_use_of_weights_that_are_asked_for(tmp_path):
    settings = SHORT | {"epochs": "1", "k": "20", "data.augment": "flip", "train.weights": "loss", "q": "0"}
    run = package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=settings)
    assert run.config["config"]["data"]["augment"] == "flip"
    assert run.config["config"]["train"]["weights"] == "loss"
    biased = Run(tmp_path / "run-biased").config["config"]
    assert biased["data"]["augment"] == "none"  # never for the biased model
    assert biased["method_name"] == "erm"  # q = 0 is the plain cross-entropy


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"augment": "pgd", "data.augment": "flip"}, "augment=pgd and data.augment=flip contradict each other"),
        ({"train.weights": "keep"}, "train.weights=keep: must be chance"),
        ({"augment": "nosuch"}, "data.augment=nosuch: must be one of"),
    ],
)
def test_pgd_refuses_what_it_cannot_obey(tmp_path, settings, said):
    with pytest.raises(UserError, match=said):
        package.train(SOURCE, "pgd", model="convnet1", out=tmp_path / "run", settings=SHORT | settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("train", "val", "patience"), [(25_600, 1000, 2), (25_599, 1000, 0), (25_600, 999, 0), (25_600, 0, 0)])
def test_the_biased_stage_ends_by_patience_on_large_sets_only(train, val, patience):
    split = torch.tensor([0] * train + [1] * val + [2])
    data = DataSet(
        name="rows", inputs=Memory(torch.zeros(len(split), 1)), y=torch.zeros(len(split), dtype=torch.long), classes=("a", "b"), split=split
    )  # fmt: skip
    assert default_patience(data, 256) == patience
