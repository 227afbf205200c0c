"""Features are computed once, what an interruption left is kept, and a user's own representation is one like any other."""

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew import features as _base
from unskew.features import compute, spec

pytestmark = pytest.mark.usefixtures("own_cache")


def test_features_are_computed_once(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    specs = [spec("color"), spec("texture")]
    first = compute(data, specs, torch.arange(50))[1]
    monkeypatch.setattr(_base, "_chunk", None)  # would fail if called
    again = compute(data, specs, torch.arange(50))[1]
    for name in first:
        torch.testing.assert_close(first[name], again[name], rtol=0, atol=0)


def test_an_interrupted_computation_keeps_its_chunks(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    monkeypatch.setattr(_base, "CHUNK", 10)
    real, calls = _base._chunk, []

    def breaks(*words):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*words)

    monkeypatch.setattr(_base, "_chunk", breaks)
    with pytest.raises(KeyboardInterrupt):
        compute(data, [spec("color")], torch.arange(50))
    found = compute(data, [spec("color")], torch.arange(50))[1]["color"]
    assert len(calls) == 4 + 2  # three chunks were kept; the fourth and fifth were computed now
    torch.testing.assert_close(found, data.inputs.x.float().flatten(2).amax(2) / 255)


def test_a_users_own_representation_by_dotted_name():
    data = pictures(torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8))
    assert features(data, "tests.support.own_representation").flatten().tolist() == data.inputs.x[:, 0, 0, 0].div(255).tolist()
