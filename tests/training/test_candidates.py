"""Candidates: which methods fit which kind of data, with which settings, and how long a share of their training is."""

import pytest
import torch

from unskew.core.settings import Settings
from unskew.data.dataset import DataSet, Memory
from unskew.data.splitting import carve_splits
from unskew.training.candidates import candidates, shortened


def data(*shape, labels=1, n=400):
    y = torch.arange(n) % 2 if labels == 1 else (torch.arange(n)[:, None] >> torch.arange(labels)) % 2
    split, _ = carve_splits(torch.arange(n) % 2, torch.zeros(n, dtype=torch.long), 0.1, 0)
    x = torch.zeros(n, *shape) if len(shape) == 1 else torch.zeros(n, *shape, dtype=torch.uint8)
    return DataSet(name="rows", inputs=Memory(x), y=y, classes=("a", "b"), split=split)


EVERYWHERE = ["erm", "independence", "ccdb", "pgd", "jtt"]


@pytest.mark.parametrize(
    ("shape", "named", "more", "missing"),
    [
        (
            (6,),
            ["column:name=site"],
            ["last_layer", "repair"],
            {"neutralise": "no change of the inputs removes column:name=site"},
        ),
        ((6,), [], ["last_layer"], {"neutralise": "named nothing", "repair": "named no representation"}),
        ((3, 28, 28), ["color:kind=mean"], ["neutralise", "repair"], {"last_layer": "a whole network learns"}),
        ((3, 28, 28), ["frame:at=0"], ["repair"], {"neutralise": "needs clips", "last_layer": "whole network"}),
        ((4, 3, 16, 16), ["frame:at=0"], ["neutralise", "repair"], {"last_layer": "a whole network learns"}),
    ],
)
def test_methods_fit_the_kind_of_data(shape, named, more, missing):
    fit, left = candidates(data(*shape), named)
    assert sorted(c.name for c in fit) == sorted([*EVERYWHERE, *more])
    assert fit[0].name == "erm"
    assert set(left) == set(missing)
    for name, words in missing.items():
        assert words in left[name]


def test_settings_come_from_what_was_named():
    settings = {c.name: dict(c.settings) for c in candidates(data(3, 28, 28), ["exif:field=make", "texture", "color"])[0]}
    assert settings["neutralise"] == {"what": "low_pass"}
    assert settings["repair"] == {"phi": "exif:field=make"}
    assert {c.name: dict(c.settings) for c in candidates(data(6), [])[0]}["pgd"] == {"augment": "none"}


def test_a_network_that_was_asked_for_leaves_no_last_layer():
    assert "last_layer" in candidates(data(6), [], "mlp")[1]


def test_several_labels_leave_what_can_have_them():
    assert [c.name for c in candidates(data(6, labels=2), [])[0]] == ["erm", "last_layer", "independence"]


def test_a_share_of_the_training():
    erm, last, *_ = candidates(data(6), [])[0]
    rows = data(6)
    assert shortened(erm, 0.25, rows, Settings.of({"train.steps": 200}), "") == {"train.steps": 50}
    assert shortened(erm, 0.5, rows, Settings.of({"train.epochs": 8}), "") == {"train.epochs": 4}
    assert shortened(erm, 0.5, rows, Settings.of({}), "mlp") == {"train.epochs": 5}  # of the usual ten
    assert shortened(erm, 0.25, rows, Settings.of({}), "") == {"train.steps": 150}  # of 600, the least
    assert shortened(erm, 1.0, rows, Settings.of({}), "") == {}
    assert last.name == "last_layer"
    assert shortened(last, 0.25, rows, Settings.of({"train.steps": 200}), "") == {}
