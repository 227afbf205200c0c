"""Small versions of the built-in data sets, and what those with a ratio have in common."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import bases, cifar, load
from unskew.data.sets import cats_dogs, places

DIGITS = "base=digits"


def source(name, extra=""):
    small = {
        "tiles": "base=digits,rows=400",
        "cartoon": "rows=800,size=16",
        "texture-shapes": "rows=800,size=24",
        "moving-digits": "base=digits,rows=600,size=24",
        "places": "rows=200,test=10,size=24",
        "defects": "rows=200,test=60,size=32",
    }
    settings = ",".join(filter(None, [DIGITS if "mnist" in name else small.get(name, ""), extra]))
    return f"{name}:{settings}" if settings else name


def use_small_sources(monkeypatch):
    """`places` and `cats-dogs` from 2,000 random pictures of each source, not a download: water blue, land brown; 500 for the test."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(2000)[torch.randperm(2000, generator=g)] % 10
    grey = torch.randint(0, 256, (2000, 28, 28), generator=g, dtype=torch.uint8)
    photographs = torch.randint(0, 100, (2000, 3, 32, 32), generator=g, dtype=torch.uint8)
    blue = torch.isin(y, torch.tensor([cifar.NAMES.index(n) for n in ("ship", "airplane")]))
    photographs[:, 2][blue] += 100
    photographs[:, 0][~blue] += 100
    monkeypatch.setattr(places, "base", lambda name: bases.Base(grey, y, 1500))
    for made_of_photographs in (places, cats_dogs):
        monkeypatch.setattr(made_of_photographs, "cifar10", lambda: cifar.Photographs(photographs, y, 1500))


def biased_in_training_only(name):
    made = load(f"{name},rows=2000,ratio=0.9,seed=1")
    train, test = made.rows("train"), made.rows("test")
    kinds = len(made.classes)
    share = (made.y == made.bias[:, 0]).double()
    assert abs(share[train].mean() - 0.9) < 4 * (0.09 / 1600) ** 0.5
    assert abs(share[test].mean() - 1 / kinds) < 4 * (0.25 / 200) ** 0.5
    other = load(f"{name},rows=2000,ratio=0.2,seed=1")
    assert torch.equal(other.inputs.rows(test)[0], made.inputs.rows(test)[0])
    assert torch.equal(other.bias[test], made.bias[test])
    with pytest.raises(UserError, match=r"ratio=1.5: the share of aligned rows must lie in \[0, 1\]"):
        load(f"{name},ratio=1.5")
