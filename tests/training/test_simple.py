"""Features of a simple model: slices take what a trial has left in the cache."""

import pytest
import torch

import unskew as package
from unskew.features import at_hand
from unskew.models._contract import maker
from unskew.training import frozen, simple
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


def test_slices_and_judgement_take_the_features_of_a_trial(tiny, monkeypatch):
    data = package.load(SOURCE)
    network, asked = tiny("", {}, data.shape, 3)(), []
    made = frozen.compute
    monkeypatch.setattr(
        frozen, "compute", lambda d, specs, rows, workers=0: (asked.append(len(rows)), made(d, specs, rows, workers=workers))[1]
    )
    train, test = data.rows("train"), data.rows("test")
    some = torch.cat([train[::3], test[:7]]).sort().values
    before = simple.slice_features(data, some, 0)
    with_features(data, network, train)  # as a trial does
    after = simple.slice_features(data, some, 0)
    with_features(data, network, torch.cat([train, data.rows("val")]))  # as a training does
    both = with_features(data, network, torch.cat([test, train[::2]]))  # as a judgement does
    whole = len(train)
    assert asked == [whole // 3 + bool(whole % 3), 7, whole, whole, 7, whole, len(data.rows("val")), whole, len(test)]
    assert torch.equal(before[0], some)
    assert torch.equal(after[0], some)
    torch.testing.assert_close(before[1], after[1], rtol=1e-4, atol=1e-4)
    x, there = both.inputs.rows(torch.cat([test, train[::2]]))
    assert bool(there.all())
    torch.testing.assert_close(x[-1:], with_features(data, network, train[::2][-1:]).inputs.rows(train[::2][-1:])[0])
