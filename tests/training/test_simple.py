"""Features of a simple model: slices take what a trial has left in the cache."""

import pytest
import torch

import unskew as package
from unskew.features import at_hand
from unskew.models._contract import maker
from unskew.training import simple
from unskew.training.frozen import representation_of, with_features

pytestmark = pytest.mark.usefixtures("own_cache")
SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"


@pytest.fixture
def tiny(monkeypatch):
    """A small network in place of the pretrained one, the same at every call."""

    def made(name, settings, shape, outputs):
        def make():
            with torch.random.fork_rng():
                torch.manual_seed(0)
                return maker("frozen", {"backbone": "small-resnet", "size": 16}, shape, outputs)()

        return make

    monkeypatch.setattr(simple, "maker", made)
    monkeypatch.setattr(simple, "_pretrained", lambda data: True)
    return made


def test_features_are_at_hand_once_the_same_rows_were_asked_for(tiny):
    data = package.load(SOURCE)
    one, rows = representation_of(tiny("", {}, data.shape, 3)()), data.rows("train")[:50]
    assert not at_hand(data, one, rows)
    with_features(data, tiny("", {}, data.shape, 3)(), rows)
    assert at_hand(data, one, rows)
    assert not at_hand(data, one, rows[:40])


def test_slices_take_the_features_of_a_trial(tiny, monkeypatch):
    data = package.load(SOURCE)
    asked = []
    monkeypatch.setattr(
        simple, "with_features", lambda d, n, rows, w=0: (asked.append(len(rows)), with_features(d, n, rows, w))[1]
    )
    some = torch.cat([data.rows("train")[::3], data.rows("test")[:7]]).sort().values
    before = simple.slice_features(data, some, 0)
    with_features(data, tiny("", {}, data.shape, 3)(), data.rows("train"))  # as a trial does
    after = simple.slice_features(data, some, 0)
    assert asked == [len(data.rows("train")[::3]), 7, len(data.rows("train")), 7]
    assert torch.equal(before[0], some)
    assert torch.equal(after[0], some)
    torch.testing.assert_close(before[1], after[1], rtol=1e-4, atol=1e-4)
