"""A method made from names and settings, and started from another run's network."""

import pytest
import torch

import unskew as package
from tests.support.methods import make
from unskew.core.errors import UserError
from unskew.training.make import warm_start


def test_a_folder_without_a_finished_run_starts_nothing(tmp_path):
    with pytest.raises(UserError, match="not a finished run"):
        warm_start(make("erm"), str(tmp_path))


def test_warm_start_takes_the_network_and_refuses_another(tmp_path):
    source = "planted:rows=300,bias=0.5"
    first = package.train(source, "erm", model="mlp", out=tmp_path / "first", settings={"train.steps": 5, "model.hidden": "7"})
    second = package.train(
        source, "lff", model="mlp", out=tmp_path / "second",
        settings={"train.steps": 1, "optim.lr": 1e-12, "model.hidden": "7", "train.start": str(first.path)},
    )  # fmt: skip
    from unskew.core import checkpoint

    a, b = (checkpoint.read(r.path / "model.safetensors")[0] for r in (first, second))
    for key in (k for k in a if k.startswith("model.")):
        torch.testing.assert_close(a[key], b[key])
    with pytest.raises(UserError, match="another architecture"):
        package.train(
            source, "lff", model="mlp", out=tmp_path / "third",
            settings={"train.steps": 1, "model.hidden": "9", "train.start": str(first.path)},
        )  # fmt: skip
    assert not (tmp_path / "third").exists()
