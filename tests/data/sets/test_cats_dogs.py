"""cats-dogs: bright and dark animals by their pixels, biased in training and alike in the test."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.cifar import NAMES, Photographs
from unskew.data.sets import cats_dogs


@pytest.fixture(autouse=True)
def photographs(monkeypatch):
    """Sixty training and thirty test photographs of every class, each of one random brightness."""
    level = torch.randint(0, 256, (900,), generator=torch.Generator().manual_seed(0))
    x = level[:, None, None, None].expand(900, 3, 32, 32).to(torch.uint8).contiguous()
    made = Photographs(x, torch.arange(900) % 10, 600)
    monkeypatch.setattr(cats_dogs, "cifar10", lambda: made)
    return made


@pytest.mark.parametrize("which", ["TB1", "TB2"])
def test_one_animal_is_bright_and_the_other_dark(photographs, which):
    data = load(f"cats-dogs:set={which},share=0.25", holdout=0)
    learnt = torch.cat([data.rows("train"), data.rows("val")])
    assert len(learnt) == 2 * 15  # a quarter of sixty of each animal
    assert len(data.rows("val")) == 3
    dark_cats = bool((data.bias[learnt, 0] == data.y[learnt]).all())
    assert dark_cats == (which == "TB1")
    test = data.rows("test")
    assert data.group[test].bincount().tolist() == [7, 7, 7, 7]  # a quarter of thirty, of all four kinds
    light = data.inputs.x[:, 0, 0, 0].float()
    for animal, name in enumerate(data.classes):
        own = photographs.x[:600][photographs.y[:600] == NAMES.index(name)][:, 0, 0, 0].float()
        mine = learnt[data.y[learnt] == animal]
        bright = bool(data.bias[mine[0], 0])
        assert light[mine].sort().values.tolist() == own.sort(descending=bright).values[:15].sort().values.tolist()
    aligned, _ = data.aligned()
    assert torch.equal(aligned[0], torch.eye(2).bool() if which == "TB1" else ~torch.eye(2).bool())


def test_a_share_above_a_half_is_refused():
    with pytest.raises(UserError, match="share must lie in"):
        load("cats-dogs:share=0.6")
