"""A finished run, opened again."""

import torch

import unskew as package
from unskew.models._contract import maker


def test_a_finished_run_does_not_need_the_file_of_its_first_weights(tmp_path):
    torch.save(maker("resnet", {"width": 4}, (3, 28, 28), 10)().state_dict(), tmp_path / "w.pth")
    settings = {"model.width": 4, "model.weights": str(tmp_path / "w.pth"), "train.steps": 2, "train.batch": 16}
    run = package.train("colored-mnist:base=digits", model="resnet", out=tmp_path / "run", settings=settings)
    first = package.evaluate(run).metrics["plain"]
    (tmp_path / "w.pth").unlink()
    assert package.evaluate(run).metrics["plain"] == first  # scaled as in training, though the weights' file is gone
