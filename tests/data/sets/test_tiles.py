"""tiles: the law it states, the true leakage by enumeration and by an attacker, and what is where in a picture."""

import itertools
import math

import pytest
import torch
from scipy.stats import binomtest

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.sets.tiles import CELL, Config, chances, true_leakage
from unskew.measure import Attack, dataset_leakage

QUICK = Attack(rounds=3, hidden=64, lr=2e-3, epochs=15, min_steps=0, batch=256)


@pytest.fixture(scope="module")
def scenes():
    return load("tiles:base=digits,rows=4000,noise_std=0")


def test_objects_come_with_the_attribute_as_the_ratios_say(scenes):
    wanted = chances(Config(base="digits").ratios, 0.3)
    objects = torch.cat([scenes.y, torch.tensor(scenes.columns["hidden_object"].to_list())[:, None]], 1)
    for a in (0, 1):
        rows = objects[scenes.bias[:, 0] == a]
        for k, p in enumerate(wanted[a].tolist()):
            assert binomtest(int(rows[:, k].sum()), len(rows), p).pvalue > 1e-4
    assert (wanted[1] / wanted[0])[[0, -2, -1]].tolist() == pytest.approx([2, 0.5, 6])


def test_true_leakage_by_hand_and_by_an_attacker():
    # Two objects, chances (0.2, 0.5) and (0.6, 0.5): the second tells nothing, the first decides.
    assert true_leakage(torch.tensor([[0.2, 0.5], [0.6, 0.5]])) == pytest.approx(0.7)
    by_hand = 0.0
    p = chances(Config().ratios[:-1], 0.3).tolist()
    for scene in itertools.product((0, 1), repeat=9):
        by_hand += max(math.prod(q if o else 1 - q for q, o in zip(row, scene, strict=True)) for row in p) / 2
    assert true_leakage(torch.tensor(p)) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.6659, abs=5e-5)  # the card's
    assert true_leakage(chances(Config(base="digits").ratios[:-1], 0.3)) == pytest.approx(0.6588, abs=5e-5)
    both = [true_leakage(chances(Config(base=b).ratios, 0.3)) for b in ("fashion", "digits")]
    assert both == pytest.approx([0.7526, 0.7489], abs=5e-5)
    big = load("tiles:base=digits,rows=20000,ratio=4")
    best = true_leakage(chances(Config(base="digits", ratio=(4.0,)).ratios[:-1], 0.3))
    assert dataset_leakage(big.y, big.bias[:, 0], attack=QUICK).value == pytest.approx(best, abs=0.015)


def test_only_the_person_is_coloured_and_its_box_says_where(scenes):
    x = scenes.inputs.x[:300].float()
    coloured = (x.amax(1) - x.amin(1)) > 40  # (n, H, W)
    box = torch.tensor([scenes.columns[c].to_list()[:300] for c in ("x0", "y0", "x1", "y1")]).T
    for picture, (x0, y0, x1, y1) in zip(coloured, box.tolist(), strict=True):
        assert (x1 - x0, y1 - y0) == (CELL, CELL)
        assert bool(picture[y0:y1, x0:x1].any())
        picture[y0:y1, x0:x1] = False
        assert not bool(picture.any())
    red, blue = x[:, 0].sum((1, 2)), x[:, 2].sum((1, 2))
    assert ((red > blue) == (scenes.bias[:300, 0] == 1)).float().mean() > 0.97  # orange and blue


def test_every_object_is_in_the_picture(scenes):
    cells = scenes.inputs.x[:300].amax(1).unfold(1, CELL, CELL).unfold(2, CELL, CELL).flatten(3).amax(3).flatten(1)  # (n, 12)
    objects = scenes.y[:300].sum(1) + torch.tensor(scenes.columns["hidden_object"].to_list()[:300])
    assert ((cells > 40).sum(1) == objects + 1).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("ratio=1,2", "must have 1 or 8 numbers"),
        ("ratio=0", "above 0"),
        ("presence=0.7", r"\(0, 0.5\]"),
        ("rows=10", "rows must be at least 100"),
        ("share=1", "share"),
    ],
)
def test_impossible_scenes_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        load(f"tiles:base=digits,{settings}")
